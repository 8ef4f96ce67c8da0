// The text form: PyTorch's CSV dialect, one row per worker, one cell per slot (grammar in
// docs/formats/schedule.md).
#pragma once

#include <string>
#include <string_view>

#include "headrace/schedule/schedule.h"

namespace headrace::schedule {

/// "2F0", "1SEND_F3", "(0F3;3B1)OVERLAP_F_B", "0U", ...
std::string to_text(const Action& action);

/// @throws base::ScheduleError telling the cell, what was expected and where.
Action parse_action(std::string_view cell);

/// One row per worker. Not the placement: a stage is held by the workers whose rows name it.
std::string to_csv(const Schedule& schedule);

/// @throws base::ScheduleError with row and column (both from 1) of the first bad cell.
Schedule parse_csv(std::string_view csv, std::string name);

/// The grid as people draw it, one row per worker, one column per slot of its list; cells that
/// wait for a dependency are padded so that columns are time in unit slots. `mark` (worker, index)
/// is set in brackets.
std::string draw(const Schedule& schedule, int marked_worker = -1, int marked_index = -1);

}  // namespace headrace::schedule
