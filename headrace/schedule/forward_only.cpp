// What an evaluation runs: the forwards and their transfers, in the order of the list.
#include "headrace/schedule/cells.h"
#include "headrace/schedule/passes.h"

namespace headrace::schedule {

Schedule forward_only(Schedule schedule) {
  keep_actions(schedule, [](const Action& action) {
    return action.kind == Kind::kForward || action.kind == Kind::kSendForward ||
           action.kind == Kind::kRecvForward;
  });
  return schedule;
}

}  // namespace headrace::schedule
