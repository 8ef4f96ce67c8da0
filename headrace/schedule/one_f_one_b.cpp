// 1F1B with a flush: PipeDream-flush (Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN
// Training", arXiv 2006.09503, section 3.2; the default schedule of Megatron, arXiv 2104.04473).
//
// K = 3, M = 4 (columns are time, a backward drawn as long as a forward):
//
//   worker 0 | F0 F1 F2       B0 F3 B1    B2    B3
//   worker 1 |    F0 F1    B0 F2 B1 F3 B2    B3
//   worker 2 |       F0 B0 F1 B1 F2 B2 F3 B3
//
// Stage s begins with K - s forwards (the last one belongs to the steady phase already), then takes
// one backward and one forward in turn, then the backwards that are left.
//
// Bubble fraction (K - 1) / (M + K - 1), as GPipe; min(K - s, M) microbatches live at stage s; one
// weight version; the weights change once per step, after the flush. M may be smaller than K.
#include <algorithm>

#include "headrace/schedule/generators.h"

namespace headrace::schedule {

Schedule one_f_one_b(const Shape& shape) {
  Schedule schedule = one_stage_per_worker("1F1B", shape);
  const int num_microbatches = schedule.num_microbatches;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    auto& list = schedule.workers[static_cast<std::size_t>(stage)];
    const int ahead = std::min(schedule.num_stages - stage, num_microbatches);
    for (int microbatch = 0; microbatch < ahead; ++microbatch) {
      list.push_back({.stage = stage, .kind = Kind::kForward, .microbatch = microbatch});
    }
    for (int microbatch = 0; microbatch < num_microbatches; ++microbatch) {
      list.push_back({.stage = stage, .kind = Kind::kBackward, .microbatch = microbatch});
      if (microbatch + ahead < num_microbatches) {
        list.push_back({.stage = stage, .kind = Kind::kForward, .microbatch = microbatch + ahead});
      }
    }
  }
  return schedule;
}

}  // namespace headrace::schedule
