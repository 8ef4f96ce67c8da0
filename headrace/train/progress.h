// What a run looks like from outside while it goes on: metrics of every step, lines now and then,
// and where the time of each stage went in the end.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/record/metrics.h"
#include "headrace/record/recipe.h"
#include "headrace/runtime/pipeline.h"

namespace headrace::train {

/// Follows the steps of one run.
class ProgressLog {
 public:
  ProgressLog(const record::Recipe& recipe, const std::filesystem::path& metrics_file,
              std::function<void(std::string_view)> print);

  /// Books one step: a line of metrics.jsonl, and of the console if it is due.
  /// @param step counted from 1. @param elapsed_seconds since training began.
  void step(std::int64_t step, double lr, std::int64_t tokens, const runtime::StepResult& result,
            const std::vector<runtime::StageMemory>& memory, double elapsed_seconds);

  /// Mean loss over the first and the last 20 steps that were not skipped; NaN without any.
  double first_loss() const;
  double last_loss() const;
  /// Mean busy seconds per step of each worker.
  std::vector<double> mean_busy_seconds() const;
  double mean_step_seconds() const;

 private:
  double eta_seconds(std::int64_t step, double elapsed_seconds) const;

  const record::Recipe recipe_;
  record::MetricsFile metrics_;
  std::function<void(std::string_view)> print_;
  std::vector<double> first_losses_;
  std::deque<double> last_losses_;
  std::vector<double> busy_seconds_;  // summed over steps, by worker
  double step_seconds_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t window_tokens_ = 0;  // since the last console line
  double window_start_ = 0;
};

}  // namespace headrace::train
