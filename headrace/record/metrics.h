// What a run tells of each step: one JSON object a line in metrics.jsonl, and the console line
// (docs/formats/metrics.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/file.h"

namespace headrace::record {

/// One step. Numbers that are not finite are allowed where a sum can become so.
struct StepRecord {
  std::int64_t step = 0;  // updates so far, this one included: the first is 1
  double loss = 0;
  double grad_norm = 0;  // before clipping
  double lr = 0;
  std::int64_t tokens = 0;  // trained on in this step
  double step_seconds = 0;
  double bubble_rate = 0;  // share of the workers' time that was waiting, 0..1
  std::vector<std::int64_t> peak_bytes_by_stage;
  std::vector<std::int64_t> live_bytes_by_stage;
  std::vector<double> busy_seconds_by_worker;
  std::vector<double> wait_seconds_by_worker;
  bool skipped = false;  // nothing was updated

  bool operator==(const StepRecord&) const = default;
};

/// The record as one line of JSON, without its newline. Numbers read back to the same bits; one
/// that is not finite is null, and the line then has "nonfinite": true.
std::string to_json_line(const StepRecord& record);

/// Reads such a line; null is a NaN. Unknown keys are left alone: later versions add some.
/// @throws base::IoError naming `where` and what is wrong.
StepRecord parse_step_record(std::string_view line, const std::string& where);

/// All whole lines of a metrics.jsonl; a last line without its newline (a killed run's) is left
/// out.
/// @throws base::IoError with file and line.
std::vector<StepRecord> read_metrics(const std::filesystem::path& path);

/// Appends records. Each line goes out at once and whole. Opening takes off a torn last line that
/// a killed run may have left.
class MetricsFile {
 public:
  /// @throws base::IoError if it cannot be opened.
  explicit MetricsFile(const std::filesystem::path& path);

  void append(const StepRecord& record);

 private:
  base::LineFile file_;
};

/// "step: 40  loss: 2.31415  grad_norm: 0.8421  lr: 3.0e-04  tps: 8,412  bubble: 11.2%  memory:
/// 0.31GiB  eta: 1m12s". Memory is the peak of the stage that has most. A skipped step says so.
std::string console_line(const StepRecord& record, double tokens_per_second,
                         std::optional<double> eta_seconds);

}  // namespace headrace::record
