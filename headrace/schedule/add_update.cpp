// The end of a synchronous step. Uses of tied weights are summed first, so that the norm counts a
// tied weight once; every stage's part of the norm comes before any update.
//
//   worker with stages 0 and 2, stage 0 tied:   ... 0REDUCE_TIE 0NORM 2NORM 0U 2U
#include <algorithm>
#include <functional>

#include "headrace/base/error.h"
#include "headrace/schedule/passes.h"

namespace headrace::schedule {

Schedule add_update(Schedule schedule, const UpdateOptions& options) {
  const auto& tied = options.tied_stages;
  HEADRACE_INVARIANT(std::adjacent_find(tied.begin(), tied.end(), std::greater_equal<>()) ==
                     tied.end());
  HEADRACE_INVARIANT(tied.empty() || (tied.front() >= 0 && tied.back() < schedule.num_stages));
  const auto append = [&](Kind kind, int stage) {
    for (const int worker : schedule.placement[static_cast<std::size_t>(stage)]) {
      schedule.workers[static_cast<std::size_t>(worker)].push_back({.stage = stage, .kind = kind});
    }
  };
  for (const int stage : tied) {
    append(Kind::kReduceTie, stage);
  }
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    append(Kind::kNorm, stage);
  }
  for (int stage = 0; options.update && stage < schedule.num_stages; ++stage) {
    append(Kind::kUpdate, stage);
  }
  return schedule;
}

}  // namespace headrace::schedule
