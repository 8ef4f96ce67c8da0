#include "headrace/optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/optim/choice.h"

namespace headrace::optim {
namespace {

double decayed_factor(const LrSchedule& schedule, std::int64_t step) {
  const std::int64_t length =
      std::llround(static_cast<double>(schedule.total_steps) * schedule.decay_ratio);
  const std::int64_t start = std::max(schedule.warmup_steps, schedule.total_steps - length);
  if (schedule.decay == Decay::kNone || step < start) {
    return 1.0;
  }
  const double floor = schedule.min_lr_factor;
  const auto since = static_cast<double>(step - start);
  if (schedule.decay == Decay::kInverseSqrt) {
    const auto n = static_cast<double>(std::max<std::int64_t>(start, 1));
    return std::max(floor, std::sqrt(n / (n + since)));
  }
  if (step >= schedule.total_steps) {
    return floor;
  }
  const double progress = since / static_cast<double>(schedule.total_steps - start);
  const double shape = schedule.decay == Decay::kLinear
                           ? 1.0 - progress
                           : 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return floor + (1.0 - floor) * shape;
}

}  // namespace

Decay decay_from_text(const std::string& name) {
  constexpr std::array kDecays{Decay::kNone, Decay::kLinear, Decay::kCosine, Decay::kInverseSqrt};
  return kDecays[choose("decay type", name, {"none", "linear", "cosine", "inverse_sqrt"})];
}

double LrSchedule::at(std::int64_t step) const {
  HEADRACE_INVARIANT(step >= 0);
  if (step < warmup_steps) {
    return lr * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  return lr * decayed_factor(*this, step);
}

void LrSchedule::check() const {
  std::string mistakes;
  const auto require = [&mistakes](bool holds, const char* rule, auto found) {
    if (!holds) {
      mistakes += std::string(mistakes.empty() ? "" : "; ") + rule + ", found " +
                  base::exact_text(static_cast<double>(found));
    }
  };
  require(std::isfinite(lr) && lr >= 0, "the learning rate must be finite and at least 0", lr);
  require(warmup_steps >= 0, "warmup_steps must be at least 0", warmup_steps);
  require(total_steps >= 0, "total_steps must be at least 0", total_steps);
  require(total_steps > 0 || decay == Decay::kNone || decay == Decay::kInverseSqrt,
          "a linear or cosine decay needs total_steps of at least 1", total_steps);
  require(decay_ratio > 0 && decay_ratio <= 1, "decay_ratio must be in (0, 1]", decay_ratio);
  require(min_lr_factor >= 0 && min_lr_factor <= 1, "min_lr_factor must be in [0, 1]",
          min_lr_factor);
  if (!mistakes.empty()) {
    throw base::ConfigError("learning rate schedule: " + mistakes);
  }
}

}  // namespace headrace::optim
