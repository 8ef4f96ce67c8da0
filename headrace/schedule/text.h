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

/// Number of stages and microbatches: one more than the highest named. A stage is held by the
/// workers whose rows name it, in the order of the first microbatch that each forwards (microbatch
/// i goes to replica i mod r). Empty cells are skipped, empty rows at the end too.
/// @throws base::ScheduleError with row and column (both from 1) of the first bad cell, or for more
///         than 4,096 rows, 1,000,000 actions or 64 MiB.
Schedule parse_csv(std::string_view csv, std::string name);

/// The grid as people draw it, one row per worker, columns are time: every action takes one slot
/// and starts when its list and what it needs allow. Stage numbers are left out where worker w
/// holds just stage w. The marked action is set in brackets. Any list can be drawn, also one that
/// `validate` refuses: what can never start follows at the end of its row, after a '!'.
std::string draw(const Schedule& schedule, int marked_worker = -1, int marked_index = -1);

/// The same, but at most 12 workers and 16 slots around the mark, for a message.
std::string draw_near(const Schedule& schedule, int marked_worker, int marked_index);

}  // namespace headrace::schedule
