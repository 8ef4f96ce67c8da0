#include "headrace/train/progress.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace headrace::train {
namespace {

constexpr std::size_t kLossWindow = 20;

template <typename Range>
double mean(const Range& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

record::StepRecord record_of(std::int64_t step, double lr, std::int64_t tokens,
                             const runtime::StepResult& result,
                             const std::vector<runtime::StageMemory>& memory) {
  record::StepRecord record;
  record.step = step;
  record.loss = result.loss;
  record.grad_norm = result.grad_norm;
  record.lr = lr;
  record.tokens = tokens;
  record.step_seconds = result.seconds;
  record.skipped = result.skipped;
  double busy = 0;
  double wait = 0;
  for (const runtime::StageTime& worker : result.workers) {
    record.busy_seconds_by_worker.push_back(worker.busy_seconds);
    record.wait_seconds_by_worker.push_back(worker.wait_seconds);
    busy += worker.busy_seconds;
    wait += worker.wait_seconds;
  }
  record.bubble_rate = busy + wait > 0 ? wait / (busy + wait) : 0;
  for (const runtime::StageMemory& stage : memory) {
    record.peak_bytes_by_stage.push_back(stage.peak_bytes);
    record.live_bytes_by_stage.push_back(stage.live_bytes);
  }
  return record;
}

}  // namespace

ProgressLog::ProgressLog(const record::Recipe& recipe, const std::filesystem::path& metrics_file,
                         std::function<void(std::string_view)> print)
    : recipe_(recipe), metrics_(metrics_file), print_(std::move(print)) {}

void ProgressLog::step(std::int64_t step, double lr, std::int64_t tokens,
                       const runtime::StepResult& result,
                       const std::vector<runtime::StageMemory>& memory, double elapsed_seconds) {
  const record::StepRecord record = record_of(step, lr, tokens, result, memory);
  metrics_.append(record);
  ++steps_;
  step_seconds_ += result.seconds;
  busy_seconds_.resize(std::max(busy_seconds_.size(), record.busy_seconds_by_worker.size()));
  for (std::size_t w = 0; w < record.busy_seconds_by_worker.size(); ++w) {
    busy_seconds_[w] += record.busy_seconds_by_worker[w];
  }
  if (!record.skipped) {
    if (first_losses_.size() < kLossWindow) first_losses_.push_back(record.loss);
    last_losses_.push_back(record.loss);
    if (last_losses_.size() > kLossWindow) last_losses_.pop_front();
  }
  window_tokens_ += tokens;
  const bool due = step == 1 || step % recipe_.metrics.log_freq == 0;
  if (!due || !print_) return;
  const double window = elapsed_seconds - window_start_;
  print_(record::console_line(record, window > 0 ? static_cast<double>(window_tokens_) / window : 0,
                              eta_seconds(step, elapsed_seconds)));
  window_tokens_ = 0;
  window_start_ = elapsed_seconds;
}

double ProgressLog::eta_seconds(std::int64_t step, double elapsed_seconds) const {
  const auto& training = recipe_.training;
  const std::int64_t end =
      training.stop_at > 0 ? std::min(training.stop_at, training.steps) : training.steps;
  const double by_steps =
      elapsed_seconds / static_cast<double>(step) * static_cast<double>(end - step);
  if (training.max_seconds <= 0) return by_steps;
  return std::max(0.0, std::min(by_steps, training.max_seconds - elapsed_seconds));
}

double ProgressLog::first_loss() const {
  return mean(first_losses_);
}
double ProgressLog::last_loss() const {
  return mean(last_losses_);
}

std::vector<double> ProgressLog::mean_busy_seconds() const {
  std::vector<double> means = busy_seconds_;
  for (double& seconds : means) seconds /= static_cast<double>(std::max<std::int64_t>(steps_, 1));
  return means;
}

double ProgressLog::mean_step_seconds() const {
  return step_seconds_ / static_cast<double>(std::max<std::int64_t>(steps_, 1));
}

}  // namespace headrace::train
