// The two sides of BatchNormStatistics: what a guarded call does with a BatchNorm's running
// buffers, and what commit() makes of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/model/layer_guard.h"

namespace headrace::model {

/// What one call of aten::batch_norm left behind.
struct BatchNormUse {
  at::Tensor mean;  // of the microbatch; with one microbatch, the new running mean
  at::Tensor var;   // unbiased; with one microbatch, the new running variance
  double momentum = 0;
  std::int64_t count = 0;  // elements per channel
};

/// The uses of one microbatch, by BatchNorm, in the order of the calls.
using BatchNormRecord = std::vector<std::vector<BatchNormUse>>;

struct BatchNormStatistics::Impl {
  struct Entry {
    at::Tensor mean;
    at::Tensor var;
    at::Tensor counter;
  };

  std::optional<std::size_t> find(const at::Tensor& running_mean) const;
  void commit(std::size_t entry) const;
  void merge(std::size_t entry, std::size_t use) const;

  std::vector<Entry> entries;
  std::unordered_map<const c10::TensorImpl*, std::size_t> by_running_mean;
  int num_microbatches = 1;
  std::map<std::uint64_t, BatchNormRecord> records;  // by microbatch: merged in ascending order
};

/// One guarded call: hands out scratch for running buffers, and publishes what was recorded only
/// when the whole call went well.
class BatchNormCall {
 public:
  BatchNormCall(BatchNormStatistics::Impl& statistics, StatisticsMode mode,
                std::uint64_t microbatch);

  /// The running buffers and momentum to run with instead; nothing for a BatchNorm not known here.
  std::optional<BatchNormUse> scratch_for(const at::Tensor& running_mean, double momentum) const;

  /// Notes that the op ran in training mode with `use` for running_mean's BatchNorm.
  void ran(const at::Tensor& running_mean, BatchNormUse use);

  /// Takes the modules' counters back to where the call found them.
  void restore_counters() const;

  void publish();

 private:
  struct Counter {
    at::Tensor value;
    std::int64_t version;
  };

  BatchNormStatistics::Impl& statistics_;
  StatisticsMode mode_;
  std::uint64_t microbatch_;
  std::vector<Counter> counters_;
  BatchNormRecord record_;
};

}  // namespace headrace::model
