// Naive model parallelism: one microbatch goes through all stages and back before the next begins
// (the baseline of GPipe's figure 2b).
//
// K = 3, M = 2 (columns are time, a backward drawn as long as a forward):
//
//   worker 0 | F0             B0 F1             B1
//   worker 1 |    F0       B0       F1       B1
//   worker 2 |       F0 B0             F1 B1
//
// Bubble fraction (K - 1) / K; one microbatch live at every stage; one weight version; the weights
// change once per step, after the last backward.
#include "headrace/schedule/generators.h"

namespace headrace::schedule {

Schedule sequential(const Shape& shape) {
  Schedule schedule = one_stage_per_worker("Sequential", shape);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    auto& list = schedule.workers[static_cast<std::size_t>(stage)];
    for (int microbatch = 0; microbatch < schedule.num_microbatches; ++microbatch) {
      list.push_back({.stage = stage, .kind = Kind::kForward, .microbatch = microbatch});
      list.push_back({.stage = stage, .kind = Kind::kBackward, .microbatch = microbatch});
    }
  }
  return schedule;
}

}  // namespace headrace::schedule
