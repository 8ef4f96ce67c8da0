// The learning rate as a function of the step index (never of how often something was called).
//
//   lr        ____________
//            /            \            warm-up, constant, decay over the last
//           /              \           decay_ratio x total_steps steps
//   floor  /                \________
//         0  warmup     start      total_steps
#pragma once

#include <cstdint>
#include <string>

namespace headrace::optim {

enum class Decay { kNone, kLinear, kCosine, kInverseSqrt };

/// "none", "linear", "cosine" or "inverse_sqrt", in any case.
/// @throws base::ConfigError for an unknown name (the nearest named).
Decay decay_from_text(const std::string& name);

struct LrSchedule {
  double lr = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // where the decay ends
  Decay decay = Decay::kNone;
  double decay_ratio = 1.0;    // the share of total_steps, at its end, over which lr decays
  double min_lr_factor = 0.0;  // after warm-up, lr never falls below lr x this

  /// `step` counts updates from 0. Warm-up rises linearly: step 0 has lr / warmup_steps. The decay
  /// starts at s = max(warmup_steps, total_steps - decay_ratio x total_steps), whose step still has
  /// the full lr, and is at its floor from total_steps on:
  ///   linear, cosine   as torchtitan's, between lr and lr x min_lr_factor
  ///   inverse_sqrt     lr sqrt(n / (n + step - s)), n = max(s, 1) (Attention Is All You Need,
  ///                    2017, eq. 3); it goes on after total_steps
  double at(std::int64_t step) const;

  /// @throws base::ConfigError naming every setting that cannot be: a number that is negative or
  /// not finite, a linear or cosine decay without total_steps, a ratio outside (0, 1], a factor
  /// outside [0, 1].
  void check() const;
};

}  // namespace headrace::optim
