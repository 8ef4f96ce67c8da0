// Deleting actions from lists, also from inside overlapped cells.
#pragma once

#include <utility>
#include <vector>

#include "headrace/schedule/schedule.h"

namespace headrace::schedule {

/// Keeps the actions for which `keep` is true. A cell of several parts loses those that are not
/// kept; left with one part it becomes that part, left with none it goes.
template <typename Keep>
void keep_actions(Schedule& schedule, const Keep& keep) {
  for (auto& list : schedule.workers) {
    std::vector<Action> kept;
    for (Action& cell : list) {
      if (cell.parts.empty()) {
        if (keep(std::as_const(cell))) {
          kept.push_back(std::move(cell));
        }
        continue;
      }
      std::erase_if(cell.parts, [&](const Action& part) { return !keep(part); });
      if (cell.parts.size() == 1) {
        kept.push_back(Action(cell.parts.front()));
      } else if (!cell.parts.empty()) {
        kept.push_back(std::move(cell));
      }
    }
    list = std::move(kept);
  }
}

}  // namespace headrace::schedule
