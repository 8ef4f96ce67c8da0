// GPipe (Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline
// Parallelism", arXiv 1811.06965, section 2.3 and figure 2c): all forwards, then all backwards.
//
// K = 3, M = 4 (columns are time, a backward drawn as long as a forward):
//
//   worker 0 | F0 F1 F2 F3             B0 B1 B2 B3
//   worker 1 |    F0 F1 F2 F3       B0 B1 B2 B3
//   worker 2 |       F0 F1 F2 F3 B0 B1 B2 B3
//
// The backwards run in ascending microbatch order here, so that gradients are added in the same
// order by every method (the paper's figure descends).
//
// Bubble fraction (K - 1) / (M + K - 1); M microbatches live at every stage; one weight version;
// the weights change once per step, after the flush.
#include "headrace/schedule/generators.h"

namespace headrace::schedule {

Schedule gpipe(const Shape& shape) {
  Schedule schedule = one_stage_per_worker("GPipe", shape);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    auto& list = schedule.workers[static_cast<std::size_t>(stage)];
    for (const Kind kind : {Kind::kForward, Kind::kBackward}) {
      for (int microbatch = 0; microbatch < schedule.num_microbatches; ++microbatch) {
        list.push_back({.stage = stage, .kind = kind, .microbatch = microbatch});
      }
    }
  }
  return schedule;
}

}  // namespace headrace::schedule
