// BatchNorm under microbatches: GPipe (Huang et al., 2019, section 2.2) normalises with the
// microbatch and tracks the statistics of the mini-batch. Means and variances are merged as in
// Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample
// Variances, 1979.
#include "headrace/model/batch_norm_statistics.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "headrace/base/error.h"
#include "headrace/model/intercept.h"

namespace headrace::model {
namespace {

at::Tensor defined_buffer(const torch::nn::Module& module, const char* name) {
  const auto buffers = module.named_buffers(/*recurse=*/false);
  const at::Tensor* buffer = buffers.find(name);
  return buffer == nullptr ? at::Tensor() : *buffer;
}

// The running buffers of a BatchNorm that tracks them; nothing for any other module.
std::optional<BatchNormStatistics::Impl::Entry> running_buffers(const torch::nn::Module& module) {
  BatchNormStatistics::Impl::Entry entry{defined_buffer(module, "running_mean"),
                                         defined_buffer(module, "running_var"),
                                         defined_buffer(module, "num_batches_tracked")};
  if (!entry.mean.defined() || !entry.var.defined() || !entry.counter.defined()) {
    return std::nullopt;
  }
  return entry;
}

}  // namespace

BatchNormStatistics::BatchNormStatistics(const std::shared_ptr<torch::nn::Module>& layer)
    : impl_(std::make_unique<Impl>()) {
  install_interception();
  for (const auto& module : layer->modules()) {
    const auto entry = running_buffers(*module);
    if (entry && !impl_->find(entry->mean)) {
      impl_->by_running_mean.emplace(entry->mean.unsafeGetTensorImpl(), impl_->entries.size());
      impl_->entries.push_back(*entry);
    }
  }
}

BatchNormStatistics::~BatchNormStatistics() = default;

bool BatchNormStatistics::empty() const {
  return impl_->entries.empty();
}

void BatchNormStatistics::begin(int num_microbatches) {
  HEADRACE_INVARIANT(num_microbatches >= 1);
  impl_->num_microbatches = num_microbatches;
  impl_->records.clear();
}

void BatchNormStatistics::commit() {
  const at::NoGradGuard no_grad;
  for (std::size_t entry = 0; entry < impl_->entries.size(); ++entry) {
    impl_->commit(entry);
  }
  impl_->records.clear();
}

std::optional<std::size_t> BatchNormStatistics::Impl::find(const at::Tensor& running_mean) const {
  const auto found = by_running_mean.find(running_mean.unsafeGetTensorImpl());
  return found == by_running_mean.end() ? std::nullopt : std::optional(found->second);
}

void BatchNormStatistics::Impl::commit(std::size_t entry) const {
  std::size_t num_uses = 0;
  for (const auto& [microbatch, record] : records) {
    num_uses = std::max(num_uses, record[entry].size());
  }
  if (num_uses == 0) {
    return;
  }
  if (num_microbatches == 1) {
    const BatchNormUse& last = records.begin()->second[entry].back();
    entries[entry].mean.copy_(last.mean);
    entries[entry].var.copy_(last.var);
  } else {
    for (std::size_t use = 0; use < num_uses; ++use) {
      merge(entry, use);
    }
  }
  entries[entry].counter.add_(static_cast<std::int64_t>(num_uses));
}

void BatchNormStatistics::Impl::merge(std::size_t entry, std::size_t use) const {
  std::vector<const BatchNormUse*> parts;
  double count = 0;
  for (const auto& [microbatch, record] : records) {
    if (use < record[entry].size()) {
      parts.push_back(&record[entry][use]);
      count += static_cast<double>(parts.back()->count);
    }
  }
  const Entry& running = entries[entry];
  at::Tensor mean = at::zeros_like(running.mean, at::kDouble);
  for (const BatchNormUse* part : parts) {
    mean += part->mean.to(at::kDouble) * (static_cast<double>(part->count) / count);
  }
  at::Tensor squares = at::zeros_like(mean);
  for (const BatchNormUse* part : parts) {
    const auto elements = static_cast<double>(part->count);
    if (elements > 1) {  // the variance of one element is 0 / 0
      squares += part->var.to(at::kDouble) * (elements - 1);
    }
    squares += (part->mean.to(at::kDouble) - mean).square() * elements;
  }
  const double momentum = parts.front()->momentum;
  const at::Tensor var = squares / (count - 1);
  running.mean.copy_(running.mean.to(at::kDouble) * (1 - momentum) + mean * momentum);
  running.var.copy_(running.var.to(at::kDouble) * (1 - momentum) + var * momentum);
}

BatchNormCall::BatchNormCall(BatchNormStatistics::Impl& statistics, StatisticsMode mode,
                             std::uint64_t microbatch)
    : statistics_(statistics),
      mode_(mode),
      microbatch_(microbatch),
      record_(statistics.entries.size()) {
  HEADRACE_INVARIANT(mode == StatisticsMode::kDiscard || statistics.records.count(microbatch) > 0 ||
                     statistics.records.size() <
                         static_cast<std::size_t>(statistics.num_microbatches));
  counters_.reserve(statistics.entries.size());
  for (const auto& entry : statistics.entries) {
    counters_.push_back({entry.counter.clone(), entry.counter._version()});
  }
}

std::optional<BatchNormUse> BatchNormCall::scratch_for(const at::Tensor& running_mean,
                                                       double momentum) const {
  const auto entry = statistics_.find(running_mean);
  if (!entry) {
    return std::nullopt;
  }
  const auto& running = statistics_.entries[*entry];
  if (mode_ == StatisticsMode::kRecord && statistics_.num_microbatches == 1) {
    const auto& earlier = record_[*entry];
    return earlier.empty()
               ? BatchNormUse{running.mean.clone(), running.var.clone(), momentum, 0}
               : BatchNormUse{earlier.back().mean.clone(), earlier.back().var.clone(), momentum, 0};
  }
  // Momentum 1 on zeros leaves the statistics of the microbatch alone.
  return BatchNormUse{at::zeros_like(running.mean), at::zeros_like(running.var), 1.0, 0};
}

void BatchNormCall::ran(const at::Tensor& running_mean, BatchNormUse use) {
  if (mode_ == StatisticsMode::kRecord) {
    record_[*statistics_.find(running_mean)].push_back(std::move(use));
  }
}

void BatchNormCall::restore_counters() const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const at::Tensor& counter = statistics_.entries[i].counter;
    if (counter._version() != counters_[i].version) {
      counter.copy_(counters_[i].value);
    }
  }
}

void BatchNormCall::publish() {
  if (mode_ == StatisticsMode::kRecord) {
    statistics_.records[microbatch_] = std::move(record_);
  }
}

std::vector<std::pair<std::string, at::Tensor>> buffers_not_intercepted(
    const torch::nn::Module& layer) {
  std::vector<const c10::TensorImpl*> counters;
  for (const auto& module : layer.modules(/*include_self=*/false)) {
    if (const auto entry = running_buffers(*module)) {
      counters.push_back(entry->counter.unsafeGetTensorImpl());
    }
  }
  if (const auto entry = running_buffers(layer)) {
    counters.push_back(entry->counter.unsafeGetTensorImpl());
  }
  std::vector<std::pair<std::string, at::Tensor>> watched;
  for (const auto& buffer : layer.named_buffers()) {
    if (buffer.value().defined() &&
        std::find(counters.begin(), counters.end(), buffer.value().unsafeGetTensorImpl()) ==
            counters.end()) {
      watched.emplace_back(buffer.key(), buffer.value());
    }
  }
  return watched;
}

}  // namespace headrace::model
