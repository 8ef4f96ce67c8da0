// The dispatcher's side of LayerGuard: kernels on a dispatch key of our own, which only threads
// inside a guard switch on.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace headrace::model {

class BatchNormCall;

/// What the intercepted ops of one guarded call share. Used by the guard's thread only.
class GuardedCall {
 public:
  /// `batch_norm` may be null; it is lent.
  GuardedCall(std::uint64_t key, BatchNormCall* batch_norm) : key_(key), batch_norm_(batch_norm) {}

  /// The call's generator for a device, made at the first use and seeded from the key.
  const at::Generator& generator(c10::Device device);

  BatchNormCall* batch_norm() const { return batch_norm_; }

 private:
  std::uint64_t key_;
  BatchNormCall* batch_norm_;
  std::vector<at::Generator> generators_;  // at most one a device
};

/// Registers the kernels, once per process. Any number of threads may call it at once; the first
/// call should come before other threads run ops (LibTorch's tables are read without a lock).
void install_interception();

/// While it lives, ops on this thread go through our kernels, for `call`. An inner scope takes the
/// place of the outer one until it ends.
class InterceptionScope {
 public:
  explicit InterceptionScope(GuardedCall& call);
  ~InterceptionScope();
  InterceptionScope(const InterceptionScope&) = delete;
  InterceptionScope& operator=(const InterceptionScope&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
  GuardedCall* outer_;
};

/// aten::native_dropout in training mode by ops that can be keyed: {output, mask}.
std::tuple<at::Tensor, at::Tensor> keyed_dropout(const at::Tensor& input, double p,
                                                 const at::Generator& generator);

}  // namespace headrace::model
