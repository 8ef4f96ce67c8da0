// A mini-batch with few rows: the absent microbatches' actions go, the rest keeps its order.
//
//   1F1B, stage 0 of 3, M = 4: F0 F1 F2 B0 F3 B1 B2 B3      2 present: F0 F1 B0 B1
#include "headrace/base/error.h"
#include "headrace/schedule/cells.h"
#include "headrace/schedule/passes.h"

namespace headrace::schedule {

Schedule keep_microbatches(Schedule schedule, int present) {
  HEADRACE_INVARIANT(present >= 1);
  if (present >= schedule.num_microbatches) {
    return schedule;
  }
  keep_actions(schedule, [present](const Action& action) { return action.microbatch < present; });
  schedule.num_microbatches = present;
  return schedule;
}

}  // namespace headrace::schedule
