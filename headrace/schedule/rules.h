// The rules that validate checks, one file each, in this order: each relies on those before it.
#pragma once

#include <string>
#include <vector>

#include "headrace/schedule/dependencies.h"
#include "headrace/schedule/schedule.h"
#include "headrace/schedule/validate.h"

namespace headrace::schedule {

/// Throws a base::ScheduleError: the schedule's name, the action at `place` (if it is anywhere),
/// the message, and the grid around it with the action in brackets.
[[noreturn]] void refuse(const Schedule& schedule, Place place, const std::string& message);

/// "microbatch 3 of stage 1"
std::string microbatch_text(int stage, int microbatch);

/// Placement, stage numbers, and which fields each kind takes.
void check_fields(const Schedule& schedule);

/// F once; B once, or I and W once; R at most once; all in one list and in this order.
void check_order(const Schedule& schedule, const Places& places);

/// REDUCE_GRAD, REDUCE_TIE, NORM and U: once, in this order, after the stage's last gradient.
/// UNSHARD, RESHARD, OFFLOAD, FETCH and the WAITs: nothing runs on what is not there.
void check_tail(const Schedule& schedule, const Places& places);

/// A send has its receive and stands behind what makes the value; a receive before what reads it.
void check_transfers(const Schedule& schedule, const Places& places);

/// Every cell can start. `order` is what runnable_order gave.
void check_deadlock(const Schedule& schedule, const Graph& graph, const std::vector<int>& order);

/// Fills forward_packets and backward_packets. `order` holds all nodes.
/// Cost O(actions x workers) time, O(actions) memory.
void count_packets(const Schedule& schedule, const Graph& graph, const std::vector<int>& order,
                   Proof& proof);

}  // namespace headrace::schedule
