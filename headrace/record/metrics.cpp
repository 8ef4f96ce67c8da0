#include "headrace/record/metrics.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <system_error>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/json.h"
#include "headrace/base/text.h"
#include "headrace/base/units.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostParts = 1U << 16U;  // stages or workers in a line

double number_or_nan(const base::JsonObject& object, const nlohmann::json& line,
                     const std::string& key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                 : object.number(key);
}

std::vector<std::int64_t> integers(const base::JsonObject& object, const std::string& key) {
  std::vector<std::int64_t> numbers;
  for (const nlohmann::json& item : object.array(key, kMostParts)) {
    if (!item.is_number_integer()) {
      object.fail(key, "must hold integers only");
    }
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

std::vector<double> numbers(const base::JsonObject& object, const std::string& key) {
  std::vector<double> values;
  for (const nlohmann::json& item : object.array(key, kMostParts)) {
    if (!item.is_number() && !item.is_null()) {
      object.fail(key, "must hold numbers only");
    }
    values.push_back(item.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                    : item.get<double>());
  }
  return values;
}

bool all_finite(const StepRecord& record) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto& busy = record.busy_seconds_by_worker;
  const auto& wait = record.wait_seconds_by_worker;
  return finite(record.loss) && finite(record.grad_norm) && finite(record.lr) &&
         finite(record.step_seconds) && finite(record.bubble_rate) &&
         std::all_of(busy.begin(), busy.end(), finite) &&
         std::all_of(wait.begin(), wait.end(), finite);
}

fs::path without_torn_line(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size == 0) {
    return path;  // nothing there yet, or LineFile will say why it cannot be opened
  }
  constexpr std::uint64_t kMostLine = 16U << 20U;
  const std::uint64_t begin = size > kMostLine ? size - kMostLine : 0;
  std::ifstream file(path, std::ios::binary);
  std::string tail(static_cast<std::size_t>(size - begin), '\0');
  file.seekg(static_cast<std::streamoff>(begin));
  if (!file.read(tail.data(), static_cast<std::streamsize>(tail.size()))) {
    throw base::IoError("cannot read '" + path.string() + "' to look at its last line; check it");
  }
  const std::size_t end = tail.rfind('\n');
  const std::uint64_t whole = end == std::string::npos ? begin : begin + end + 1;
  if (whole < size) {
    fs::resize_file(path, whole, error);
    if (error) {
      throw base::IoError("cannot take the torn last line off '" + path.string() +
                          "': " + error.message() + "; check its permissions");
    }
  }
  return path;
}

}  // namespace

std::string to_json_line(const StepRecord& record) {
  nlohmann::ordered_json line;
  line["step"] = record.step;
  line["loss"] = record.loss;
  line["grad_norm"] = record.grad_norm;
  line["lr"] = record.lr;
  line["tokens"] = record.tokens;
  line["step_seconds"] = record.step_seconds;
  line["bubble_rate"] = record.bubble_rate;
  line["peak_bytes_by_stage"] = record.peak_bytes_by_stage;
  line["live_bytes_by_stage"] = record.live_bytes_by_stage;
  line["busy_seconds_by_worker"] = record.busy_seconds_by_worker;
  line["wait_seconds_by_worker"] = record.wait_seconds_by_worker;
  line["skipped"] = record.skipped;
  if (!all_finite(record)) {
    line["nonfinite"] = true;
  }
  return line.dump();  // a number that is not finite is dumped as null
}

StepRecord parse_step_record(std::string_view text, const std::string& where) {
  const nlohmann::json line = base::parse_json(text, where);
  const base::JsonObject object(line, where);
  StepRecord record;
  record.step = object.integer("step", 0);
  record.loss = number_or_nan(object, line, "loss");
  record.grad_norm = number_or_nan(object, line, "grad_norm");
  record.lr = number_or_nan(object, line, "lr");
  record.tokens = object.integer("tokens", 0);
  record.step_seconds = number_or_nan(object, line, "step_seconds");
  record.bubble_rate = number_or_nan(object, line, "bubble_rate");
  record.peak_bytes_by_stage = integers(object, "peak_bytes_by_stage");
  record.live_bytes_by_stage = integers(object, "live_bytes_by_stage");
  record.busy_seconds_by_worker = numbers(object, "busy_seconds_by_worker");
  record.wait_seconds_by_worker = numbers(object, "wait_seconds_by_worker");
  record.skipped = object.boolean("skipped");
  return record;
}

std::vector<StepRecord> read_metrics(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30U;
  const std::string text = base::read_file(path, kMostBytes);
  std::vector<StepRecord> records;
  std::string_view rest = text;
  for (std::size_t number = 1;; ++number) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      return records;
    }
    records.push_back(
        parse_step_record(rest.substr(0, end), path.string() + ":" + std::to_string(number)));
    rest.remove_prefix(end + 1);
  }
}

MetricsFile::MetricsFile(const fs::path& path) : file_(without_torn_line(path)) {}

void MetricsFile::append(const StepRecord& record) {
  file_.append(to_json_line(record));
}

std::string console_line(const StepRecord& record, double tokens_per_second,
                         std::optional<double> eta_seconds) {
  const auto& peaks = record.peak_bytes_by_stage;
  const auto count = [](double value) {
    return std::isfinite(value) && std::fabs(value) < 1e15 ? base::thousands(std::llround(value))
                                                           : std::string("?");
  };
  const auto decimals = [](double value, int places) {
    return std::isfinite(value) ? base::fixed_text(value, places) : base::exact_text(value);
  };
  std::string line = "step: " + std::to_string(record.step);
  line += "  loss: " + decimals(record.loss, 5);
  line += "  grad_norm: " + decimals(record.grad_norm, 4);
  line += "  lr: " + base::scientific_text(record.lr);
  line += "  tps: " + count(tokens_per_second);
  line += "  bubble: " + decimals(100 * record.bubble_rate, 1) + "%";
  if (!peaks.empty()) {
    line += "  memory: " + base::bytes_text(*std::max_element(peaks.begin(), peaks.end()));
  }
  if (eta_seconds) {
    line += "  eta: " + base::duration_text(*eta_seconds);
  }
  return record.skipped ? line + "  skipped" : line;
}

}  // namespace headrace::record
