// The learning rate as a function of the step index (never of how often something was called).
#pragma once

#include <cstdint>
#include <string>

namespace headrace::optim {

enum class Decay { kNone, kLinear, kCosine, kInverseSqrt };

/// @throws base::ConfigError for an unknown name (the nearest named).
Decay decay_from_text(const std::string& name);

struct LrSchedule {
  double lr = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // where the decay ends
  Decay decay = Decay::kNone;
  double decay_ratio = 1.0;    // the share of total_steps, at its end, over which lr decays
  double min_lr_factor = 0.0;  // lr never falls below lr x this

  /// `step` counts updates from 0. Warm-up rises linearly: step 0 has lr / warmup_steps.
  double at(std::int64_t step) const;
};

}  // namespace headrace::optim
