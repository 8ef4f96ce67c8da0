// Rematerialisation (GPipe, arXiv 1811.06965, section 2.3): F keeps only the inputs of its stage, R
// runs the forward again. R stands before the backward as an action of its own, so that it runs
// while the gradient is still on its way.
//
//   always:       F0 F1 R0 B0 R1 B1        except last: F0 F1 R0 B0 B1
#include <set>
#include <utility>

#include "headrace/schedule/passes.h"

namespace headrace::schedule {

Schedule add_remat(Schedule schedule, Remat remat) {
  if (remat == Remat::kNever) {
    return schedule;
  }
  const int last = schedule.num_microbatches - 1;
  for (auto& list : schedule.workers) {
    std::set<std::pair<int, int>> recomputed;  // stage, microbatch
    std::vector<Action> rewritten;
    for (Action& cell : list) {
      for_each_part(cell, [&](const Action& action) {
        const bool needs_graph =
            action.kind == Kind::kBackward || action.kind == Kind::kInputGradient;
        const bool kept = remat == Remat::kExceptLast && action.microbatch == last;
        if (needs_graph && !kept && recomputed.emplace(action.stage, action.microbatch).second) {
          rewritten.push_back({.stage = action.stage,
                               .kind = Kind::kRecompute,
                               .microbatch = action.microbatch,
                               .replica = action.replica});
        }
      });
      rewritten.push_back(std::move(cell));
    }
    list = std::move(rewritten);
  }
  return schedule;
}

}  // namespace headrace::schedule
