// What surrounds each call of a layer: randomness keyed by (seed, step, microbatch, layer), and
// BatchNorm statistics taken per microbatch instead of being written to the module. Both work for
// stock modules, by intercepting the few aten ops concerned (docs/design/0003-layer-guard.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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
  explicit BatchNormStatistics(const std::shared_ptr<torch::nn::Module>& layer);
  ~BatchNormStatistics();
  BatchNormStatistics(const BatchNormStatistics&) = delete;
  BatchNormStatistics& operator=(const BatchNormStatistics&) = delete;

  bool empty() const;  // no BatchNorm inside

  /// Forgets what was recorded. `num_microbatches` present in the step: with one, the stock
  /// kernel's own running update is kept bit for bit; with more, statistics are merged in fp64.
  void begin(int num_microbatches);

  /// Writes the merged statistics (unbiased variance, counter + 1) into the module's buffers.
  /// Nothing happens where no forward in training mode was recorded.
  void commit();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// What a guarded call does with BatchNorm statistics.
enum class StatisticsMode { kRecord, kDiscard };

/// RAII around one call of one layer on this thread: empty `generator` arguments get the keyed
/// generator; BatchNorm's running buffers (those known to `statistics`) are replaced by scratch.
/// The global generator neither moves nor matters. Guards do not nest.
/// @throws base::ConfigError (from the op) for a random op that cannot be keyed, naming it.
/// Cost: about a microsecond; the generator is seeded at the first random op only.
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
