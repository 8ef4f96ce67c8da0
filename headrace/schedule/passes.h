// Small rewrites of a schedule. Each takes a list and returns a list; each in its own .cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/schedule/schedule.h"

namespace headrace::schedule {

/// When a stage throws its activations away after F and recomputes them (R) before B.
enum class Remat {
  kNever,
  kExceptLast,  // all but the last present microbatch
  kAlways,
};

/// What recipes call it: "never", "except_last", "always".
std::string remat_name(Remat remat);

/// The inverse. @throws base::ConfigError for any other text.
Remat remat_from_text(std::string_view text);

/// Deletes the actions of microbatches >= `present` (a mini-batch with few rows yields fewer
/// microbatches than the list was made for). Runs before every other pass.
Schedule keep_microbatches(Schedule schedule, int present);

/// Puts an R directly before the first of B, I of each rematerialised microbatch. An F whose
/// microbatch has an R later in the list keeps only its inputs; nothing else marks it.
Schedule add_remat(Schedule schedule, Remat remat);

/// What ends a synchronous step.
struct UpdateOptions {
  /// Stages with uses of a tied weight (all groups together, ascending, each once): each gets one
  /// REDUCE_TIE after its last backward.
  std::vector<int> tied_stages = {};
  bool update = true;  // false: the list ends with NORM, the caller steps an optimizer of its own
};

/// Appends, per stage, REDUCE_TIE where it applies, then NORM, then U.
Schedule add_update(Schedule schedule, const UpdateOptions& options);

/// Only the forwards: what an evaluation runs.
Schedule forward_only(Schedule schedule);

}  // namespace headrace::schedule
