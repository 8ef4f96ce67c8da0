#include <map>

#include "headrace/schedule/rules.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

// The action that makes what is sent, or reads what is received.
Place user_of(const Places& places, const Action& transfer) {
  const bool forward = transfer.kind == Kind::kSendForward || transfer.kind == Kind::kRecvForward;
  return forward ? places.find(transfer.stage, Kind::kForward, transfer.microbatch)
                 : places.find_gradient(transfer.stage, transfer.microbatch);
}

void check_place(const Schedule& schedule, const Places& places, const Action& transfer,
                 Place place) {
  const int peer = peer_of(transfer);
  if (peer < 0 || peer >= schedule.num_stages || peer == transfer.stage) {
    refuse(schedule, place,
           "there is no other stage at its other end; name one of 0 to " +
               std::to_string(schedule.num_stages - 1) + ", or take the transfer out");
  }
  const bool send = transfer.kind == Kind::kSendForward || transfer.kind == Kind::kSendBackward;
  const bool forward = transfer.kind == Kind::kSendForward || transfer.kind == Kind::kRecvForward;
  const Place user = user_of(places, transfer);
  const std::string what = std::string(forward ? "the forward" : "the backward") + " of " +
                           microbatch_text(transfer.stage, transfer.microbatch);
  if (!user || user.worker != place.worker) {
    refuse(schedule, place, what + " is not in this worker's list; move the transfer to it");
  }
  if (send && place.index <= user.index) {
    refuse(schedule, place, "it sends before " + what + " has run; move it behind");
  }
  if (!send && place.index >= user.index) {
    refuse(schedule, place, "it receives after " + what + " has begun; move it before");
  }
}

}  // namespace

void check_transfers(const Schedule& schedule, const Places& places) {
  std::map<Message, Place> sends;
  std::map<Message, Place> receives;
  for_each_action(schedule, [&](const Action& action, Place place) {
    if (!is_transfer(action.kind)) {
      return;
    }
    check_place(schedule, places, action, place);
    const bool send = action.kind == Kind::kSendForward || action.kind == Kind::kSendBackward;
    if (!(send ? sends : receives).try_emplace(message_of(action), place).second) {
      refuse(schedule, place, "the same transfer stands in the lists already; take one out");
    }
  });
  for (const auto& [message, place] : sends) {
    if (!receives.contains(message)) {
      refuse(schedule, place,
             "nobody receives it; add the RECV to stage " + std::to_string(std::get<2>(message)));
    }
  }
  for (const auto& [message, place] : receives) {
    if (!sends.contains(message)) {
      refuse(schedule, place,
             "nobody sends it; add the SEND to stage " + std::to_string(std::get<1>(message)));
    }
  }
}

}  // namespace headrace::schedule
