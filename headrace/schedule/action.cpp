#include "headrace/schedule/action.h"

#include <array>

#include "headrace/base/error.h"

namespace headrace::schedule {

namespace {

struct Name {
  Kind kind;
  std::string_view text;
};

constexpr std::array<Name, 22> kNames{{
    {Kind::kForward, "F"},
    {Kind::kBackward, "B"},
    {Kind::kInputGradient, "I"},
    {Kind::kWeightGradient, "W"},
    {Kind::kRecompute, "R"},
    {Kind::kUpdate, "U"},
    {Kind::kNorm, "NORM"},
    {Kind::kSendForward, "SEND_F"},
    {Kind::kRecvForward, "RECV_F"},
    {Kind::kSendBackward, "SEND_B"},
    {Kind::kRecvBackward, "RECV_B"},
    {Kind::kReduceGradient, "REDUCE_GRAD"},
    {Kind::kReduceTie, "REDUCE_TIE"},
    {Kind::kUnshard, "UNSHARD"},
    {Kind::kReshard, "RESHARD"},
    {Kind::kOffload, "OFFLOAD"},
    {Kind::kFetch, "FETCH"},
    {Kind::kWaitUnshard, "WAIT_UNSHARD"},
    {Kind::kWaitReduceGradient, "WAIT_REDUCE_GRAD"},
    {Kind::kWaitOffload, "WAIT_OFFLOAD"},
    {Kind::kWaitFetch, "WAIT_FETCH"},
    {Kind::kOverlapForwardBackward, "OVERLAP_F_B"},
}};

}  // namespace

bool is_compute(Kind kind) {
  return kind == Kind::kForward || kind == Kind::kBackward || kind == Kind::kInputGradient ||
         kind == Kind::kWeightGradient || kind == Kind::kRecompute;
}

bool is_transfer(Kind kind) {
  return kind == Kind::kSendForward || kind == Kind::kRecvForward || kind == Kind::kSendBackward ||
         kind == Kind::kRecvBackward;
}

std::string_view kind_name(Kind kind) {
  const auto place = static_cast<std::size_t>(kind);
  HEADRACE_INVARIANT(place < kNames.size() && kNames[place].kind == kind);
  return kNames[place].text;
}

const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all;
    for (const Name& name : kNames) {
      all.push_back(name.kind);
    }
    return all;
  }();
  return kinds;
}

}  // namespace headrace::schedule
