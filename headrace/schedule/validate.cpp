#include "headrace/schedule/validate.h"

#include <algorithm>
#include <map>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/schedule/rules.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

// What one worker's list alone decides, whatever the speed of the others.
class LiveCount {
 public:
  void cell(const Action& cell) {
    // Parts of one cell overlap: what they add may be there before what they free is gone.
    for_each_part(cell, [&](const Action& part) { add(part.kind == Kind::kForward ? 1 : 0); });
    for_each_part(cell, [&](const Action& part) { free(part.kind); });
  }

  int most() const { return most_; }
  int most_until_weight() const { return most_until_weight_; }

 private:
  void add(int count) {
    live_ += count;
    live_until_weight_ += count;
    most_ = std::max(most_, live_);
    most_until_weight_ = std::max(most_until_weight_, live_until_weight_);
  }

  void free(Kind kind) {
    live_ -= kind == Kind::kBackward || kind == Kind::kInputGradient ? 1 : 0;
    live_until_weight_ -= kind == Kind::kBackward || kind == Kind::kWeightGradient ? 1 : 0;
  }

  int live_ = 0;
  int most_ = 0;
  int live_until_weight_ = 0;
  int most_until_weight_ = 0;
};

GradientOrder gradient_order(const Schedule& schedule) {
  for (const auto& list : schedule.workers) {
    std::map<int, int> last;  // per stage: the microbatch added last
    for (const Action& cell : list) {
      bool ascending = true;
      for_each_part(cell, [&](const Action& action) {
        if (action.kind == Kind::kBackward || action.kind == Kind::kWeightGradient) {
          int& before = last.try_emplace(action.stage, Action::kNone).first->second;
          ascending = ascending && action.microbatch > before;
          before = action.microbatch;
        }
      });
      if (!ascending) {
        return GradientOrder::kOther;
      }
    }
  }
  return GradientOrder::kAscending;
}

}  // namespace

void refuse(const Schedule& schedule, Place place, const std::string& message) {
  std::string text = "schedule " + base::quote(schedule.name) + ": ";
  if (place) {
    text += "worker " + std::to_string(place.worker) + ", action " + std::to_string(place.index) +
            " (" +
            to_text(schedule.workers[static_cast<std::size_t>(place.worker)]
                                    [static_cast<std::size_t>(place.index)]) +
            "): ";
  }
  throw base::ScheduleError(text + message + "\n" + draw_near(schedule, place.worker, place.index));
}

std::string microbatch_text(int stage, int microbatch) {
  return "microbatch " + std::to_string(microbatch) + " of stage " + std::to_string(stage);
}

Proof validate(const Schedule& schedule) {
  check_fields(schedule);
  const Places places(schedule);
  check_order(schedule, places);
  check_tail(schedule, places);
  check_transfers(schedule, places);
  const Graph graph = dependencies(schedule);
  const auto order = runnable_order(graph);
  check_deadlock(schedule, graph, order);

  Proof proof;
  proof.gradient_order = gradient_order(schedule);
  for (const auto& list : schedule.workers) {
    LiveCount count;
    for (const Action& cell : list) {
      count.cell(cell);
    }
    proof.live_activations.push_back(places.has_backward() ? count.most() : 0);
    proof.live_activations_until_weight.push_back(places.has_backward() ? count.most_until_weight()
                                                                        : 0);
  }
  proof.forward_packets.assign(static_cast<std::size_t>(schedule.num_stages), 0);
  proof.backward_packets.assign(static_cast<std::size_t>(schedule.num_stages), 0);
  count_packets(schedule, graph, order, proof);
  return proof;
}

}  // namespace headrace::schedule
