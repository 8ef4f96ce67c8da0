#include <algorithm>

#include "headrace/schedule/rules.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

enum class Takes { kMicrobatch, kNoMicrobatch };

Takes microbatch_rule(Kind kind) {
  switch (kind) {
    case Kind::kUpdate:
    case Kind::kNorm:
    case Kind::kReduceGradient:
    case Kind::kReduceTie:
    case Kind::kUnshard:
    case Kind::kReshard:
    case Kind::kWaitUnshard:
    case Kind::kWaitReduceGradient:
    case Kind::kOverlapForwardBackward:
      return Takes::kNoMicrobatch;
    default:
      return Takes::kMicrobatch;
  }
}

std::string range_text(int end) {
  return end == 1 ? std::string("0 is the only one") : "they are 0 to " + std::to_string(end - 1);
}

class FieldCheck {
 public:
  explicit FieldCheck(const Schedule& schedule) : schedule_(schedule) {}

  void run() {
    check_placement();
    for (int worker = 0; worker < schedule_.num_workers(); ++worker) {
      const auto& list = schedule_.workers[static_cast<std::size_t>(worker)];
      for (int index = 0; index < static_cast<int>(list.size()); ++index) {
        place_ = {worker, index};
        check_cell(list[static_cast<std::size_t>(index)]);
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { refuse(schedule_, place_, message); }

  const std::vector<int>& holders(int stage) const {
    return schedule_.placement[static_cast<std::size_t>(stage)];
  }

  void check_placement() const {
    const Schedule& s = schedule_;
    if (s.num_workers() < 1 || s.num_stages < 1 || s.num_microbatches < 1) {
      fail("it has " + std::to_string(s.num_workers()) + " workers, " +
           std::to_string(s.num_stages) + " stages and " + std::to_string(s.num_microbatches) +
           " microbatches; each must be at least 1");
    }
    if (static_cast<int>(s.placement.size()) != s.num_stages) {
      fail("it places " + std::to_string(s.placement.size()) + " stages, but has " +
           std::to_string(s.num_stages) + "; give the workers of each stage");
    }
    std::vector<bool> holds_any(s.workers.size(), false);
    for (int stage = 0; stage < s.num_stages; ++stage) {
      if (holders(stage).empty()) {
        fail("stage " + std::to_string(stage) + " is on no worker; stages are numbered from 0 to " +
             std::to_string(s.num_stages - 1) + " without gaps, and each is in some worker's list");
      }
      std::vector<int> sorted = holders(stage);
      std::sort(sorted.begin(), sorted.end());
      if (sorted.front() < 0 || sorted.back() >= s.num_workers() ||
          std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        fail("stage " + std::to_string(stage) +
             " is placed on a worker that does not exist, or twice on one; workers: " +
             range_text(s.num_workers()));
      }
      for (const int worker : sorted) {
        holds_any[static_cast<std::size_t>(worker)] = true;
      }
    }
    const auto idle = std::find(holds_any.begin(), holds_any.end(), false);
    if (idle != holds_any.end()) {
      fail("worker " + std::to_string(idle - holds_any.begin()) +
           " holds no stage; take it out of the schedule");
    }
  }

  void check_cell(const Action& cell) const {
    if (cell.kind != Kind::kOverlapForwardBackward) {
      check_action(cell);
      return;
    }
    if (cell.parts.size() < 2 || cell.stage != Action::kNone) {
      fail(
          "an overlapped cell has at least two parts and no stage of its own, such as "
          "(0F3;3B1)OVERLAP_F_B");
    }
    check_suffixes(cell);
    for (const Action& part : cell.parts) {
      if (part.kind == Kind::kOverlapForwardBackward) {
        fail("an overlapped cell cannot stand inside another; list all parts in one");
      }
      check_action(part);
    }
  }

  void check_action(const Action& action) const {
    const std::string kind(kind_name(action.kind));
    if (!action.parts.empty()) {
      fail(kind + " takes no parts; only OVERLAP_F_B does");
    }
    if (action.stage < 0 || action.stage >= schedule_.num_stages) {
      fail("there is no stage " +
           (action.stage == Action::kNone ? std::string("given") : std::to_string(action.stage)) +
           "; of stages " + range_text(schedule_.num_stages));
    }
    const auto& on = holders(action.stage);
    const auto holder = std::find(on.begin(), on.end(), place_.worker);
    if (holder == on.end()) {
      fail("worker " + std::to_string(place_.worker) + " does not hold stage " +
           std::to_string(action.stage) + "; move the action to worker " + std::to_string(on[0]));
    }
    const auto replica = static_cast<int>(holder - on.begin());
    if (action.replica != Action::kNone && action.replica != replica) {
      fail("it names replica " + std::to_string(action.replica) + ", but this worker is replica " +
           std::to_string(replica) + " of stage " + std::to_string(action.stage));
    }
    check_suffixes(action);
  }

  void check_suffixes(const Action& action) const {
    const std::string kind(kind_name(action.kind));
    const bool takes_microbatch = microbatch_rule(action.kind) == Takes::kMicrobatch;
    if (takes_microbatch &&
        (action.microbatch < 0 || action.microbatch >= schedule_.num_microbatches)) {
      fail(action.microbatch == Action::kNone
               ? kind + " needs the number of a microbatch, such as " + to_text(action) + "0"
               : "there is no microbatch " + std::to_string(action.microbatch) +
                     "; of microbatches " + range_text(schedule_.num_microbatches));
    }
    if (!takes_microbatch && action.microbatch != Action::kNone) {
      fail(kind + " takes no microbatch; leave " + std::to_string(action.microbatch) + " out");
    }
    if (!is_transfer(action.kind) &&
        (action.peer_stage != Action::kNone || !action.value.empty())) {
      fail(kind + " takes no other stage and no value; only SEND and RECV do");
    }
    if (action.version != Action::kNone && (action.kind != Kind::kForward || action.version != 0)) {
      fail("it names weight version " + std::to_string(action.version) +
           "; in a synchronous list only F may, and all run on version 0");
    }
  }

  const Schedule& schedule_;
  Place place_;
};

}  // namespace

void check_fields(const Schedule& schedule) {
  FieldCheck(schedule).run();
}

}  // namespace headrace::schedule
