// One cell of a worker's list. Which kinds exist, and the fields that each one uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::schedule {

/// What a worker does in one cell. The comment gives the text form (docs/formats/schedule.md).
enum class Kind {
  kForward,                 // F
  kBackward,                // B: full backward
  kInputGradient,           // I: input-gradient half of a backward
  kWeightGradient,          // W: weight-gradient half of a backward
  kRecompute,               // R: rematerialise, before the gradient arrives
  kUpdate,                  // U: update of the weights
  kNorm,                    // NORM: finite check, unscale, global norm; a collective
  kSendForward,             // SEND_F
  kRecvForward,             // RECV_F
  kSendBackward,            // SEND_B
  kRecvBackward,            // RECV_B
  kReduceGradient,          // REDUCE_GRAD: over replicas
  kReduceTie,               // REDUCE_TIE: sum of the uses of a tied weight
  kUnshard,                 // UNSHARD   (reserved)
  kReshard,                 // RESHARD   (reserved)
  kOffload,                 // OFFLOAD   (reserved)
  kFetch,                   // FETCH     (reserved)
  kWaitUnshard,             // WAIT_UNSHARD      (reserved)
  kWaitReduceGradient,      // WAIT_REDUCE_GRAD  (reserved)
  kWaitOffload,             // WAIT_OFFLOAD      (reserved)
  kWaitFetch,               // WAIT_FETCH        (reserved)
  kOverlapForwardBackward,  // (..;..)OVERLAP_F_B (reserved): `parts` run overlapped
};

/// One cell. A plain value; `kNone` in a number means that the field does not apply.
struct Action {
  static constexpr int kNone = -1;

  int stage = kNone;
  Kind kind = Kind::kForward;
  int microbatch = kNone;
  int peer_stage = kNone;  // transfers: the other end
  std::string value = {};  // transfers of a skip value: its name
  int replica = kNone;     // replica, or direction of a bidirectional schedule
  int version = kNone;     // weight version of an F; kNone = newest at its place in the list
  std::vector<Action> parts = {};  // kOverlapForwardBackward: what runs overlapped

  bool operator==(const Action&) const = default;
};

/// True for F, B, I, W and R: the kinds that name one microbatch of one stage.
bool is_compute(Kind kind);

/// True for SEND_F, RECV_F, SEND_B and RECV_B.
bool is_transfer(Kind kind);

/// "F", "SEND_F", "OVERLAP_F_B", ...
std::string_view kind_name(Kind kind);

/// Every kind, in the order of the enumeration.
const std::vector<Kind>& all_kinds();

/// Calls `visit` with the action itself or, where it has parts, with each of theirs in turn.
template <typename Visit>
void for_each_part(const Action& action, const Visit& visit) {
  if (action.parts.empty()) {
    visit(action);
  }
  for (const Action& part : action.parts) {
    for_each_part(part, visit);
  }
}

}  // namespace headrace::schedule
