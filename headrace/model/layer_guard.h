// What surrounds each call of a layer: randomness keyed by (seed, step, microbatch, layer), and
// BatchNorm statistics taken per microbatch instead of being written to the module. Both work for
// stock modules, by intercepting the few aten ops concerned (docs/design/0003-layer-guard.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace headrace::model {

/// Names one call of one layer. Equal keys draw equal numbers, on any thread, in any order.
struct LayerKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t microbatch = 0;  // global index within the step
  std::uint64_t layer = 0;       // layer_id(name)
};

/// A stable 64-bit hash of a layer's name.
std::uint64_t layer_id(std::string_view name);

/// The running statistics of every BatchNorm inside one layer during one step. The module's own
/// buffers and counter are only written by commit().
/// Thread rule: one worker at a time.
class BatchNormStatistics {
 public:
  /// Finds modules with buffers running_mean, running_var and num_batches_tracked inside `layer`.
  /// Also sets up the interception, so that the first guard need not: build these before workers
  /// start.
  explicit BatchNormStatistics(const std::shared_ptr<torch::nn::Module>& layer);
  ~BatchNormStatistics();
  BatchNormStatistics(const BatchNormStatistics&) = delete;
  BatchNormStatistics& operator=(const BatchNormStatistics&) = delete;

  bool empty() const;  // no BatchNorm inside

  /// Forgets what was recorded. `num_microbatches` present in the step: with one, the stock
  /// kernel's own running update is kept bit for bit; with more, statistics are merged in fp64.
  void begin(int num_microbatches);

  /// Writes the merged statistics (unbiased variance, counter + 1) into the module's buffers, then
  /// forgets them. A BatchNorm that the layer calls n times per microbatch advances n times, as in
  /// LibTorch. Nothing happens where no forward in training mode was recorded.
  void commit();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// The buffers of a layer, by name, that no guard protects: all but BatchNorm counters. A call
/// under a guard must leave each one's `_version()` as it was (running statistics are replaced by
/// scratch); one that moved belongs to a module whose state follows its forwards, such as
/// InstanceNorm with running statistics or spectral norm.
std::vector<std::pair<std::string, at::Tensor>> buffers_not_intercepted(
    const torch::nn::Module& layer);

/// What a guarded call does with BatchNorm statistics.
enum class StatisticsMode { kRecord, kDiscard };

/// RAII around one call of one layer on this thread: empty `generator` arguments get the keyed
/// generator (one that the layer passes is left alone); BatchNorm's running buffers (those known to
/// `statistics`, which may be null) are replaced by scratch, and its counter is put back when the
/// guard ends. A guard that ends by an exception records nothing.
/// The global generator neither moves nor matters. A guard inside another one (a layer that runs a
/// net of its own) takes its place until it ends. Only the thread that made it is guarded.
/// @throws base::ConfigError (from the op) for a random op that cannot be keyed, naming it.
/// Cost: 0.1 us, and 2 us for the generator, made at the first random op; in training about 10 us
/// per BatchNorm.
class LayerGuard {
 public:
  LayerGuard(const LayerKey& key, BatchNormStatistics* statistics, StatisticsMode mode);
  ~LayerGuard();
  LayerGuard(const LayerGuard&) = delete;
  LayerGuard& operator=(const LayerGuard&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::model
