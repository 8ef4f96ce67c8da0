// Proof, before anything runs, that a list can run; and what it will hold in memory.
#pragma once

#include <string>
#include <vector>

#include "headrace/schedule/schedule.h"

namespace headrace::schedule {

/// In what order each stage adds the gradients of its microbatches.
enum class GradientOrder { kAscending, kOther };

/// What `validate` found out about a valid list.
struct Proof {
  GradientOrder gradient_order = GradientOrder::kAscending;
  /// Per worker: most microbatches (summed over its stages) between F and the end of B or I. 0 in a
  /// forward-only list, which keeps nothing.
  std::vector<int> live_activations;
  /// Per worker: the same, counted F..W (B ends both).
  std::vector<int> live_activations_until_weight;
  /// Per stage: most activation packets that can be in flight *into* it (sent by stage - 1, its F
  /// not begun), whatever the speed of the workers; exact. 0 for stage 0. For a stage on several
  /// workers the sum of what each of them may have to take.
  std::vector<int> forward_packets;
  /// Per stage: the same for gradients from stage + 1. 0 for the last stage.
  std::vector<int> backward_packets;
};

/// Proves a synchronous list: every microbatch is forwarded and backwarded once per stage, in
/// dependency order, without deadlock; what stands between and behind (R, transfers, overlapped
/// cells, reductions, NORM, U, sharding, offload) stands where its meaning allows. A list without
/// any B, I or W is proved as forward-only.
/// @throws base::ScheduleError naming the rule, the stuck actions or the cycle, with the drawn grid
///         and the place marked.
/// Cost: O(actions x workers).
Proof validate(const Schedule& schedule);

}  // namespace headrace::schedule
