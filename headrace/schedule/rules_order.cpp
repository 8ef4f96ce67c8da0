#include "headrace/schedule/rules.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

class OrderCheck {
 public:
  OrderCheck(const Schedule& schedule, const Places& places)
      : schedule_(schedule), places_(places) {}

  void run() {
    if (const Place twice = places_.repeated()) {
      refuse(schedule_, twice,
             "the same action stands in the lists before it already; each stage forwards and "
             "backwards each microbatch once, take one of them out");
    }
    // Ends at the first F that is missing: never longer than the lists.
    for (stage_ = 0; stage_ < schedule_.num_stages; ++stage_) {
      for (microbatch_ = 0; microbatch_ < schedule_.num_microbatches; ++microbatch_) {
        check_forward();
        if (places_.has_backward()) {
          check_backward();
        } else if (const Place recompute = find(Kind::kRecompute)) {
          refuse(schedule_, recompute, "R has no backward after it that would need it");
        }
      }
    }
  }

 private:
  Place find(Kind kind) const { return places_.find(stage_, kind, microbatch_); }

  std::string what() const { return microbatch_text(stage_, microbatch_); }

  std::string name(Kind kind) const {
    return to_text({.stage = stage_, .kind = kind, .microbatch = microbatch_});
  }

  int home() const {
    const auto& holders = schedule_.placement[static_cast<std::size_t>(stage_)];
    return holders[static_cast<std::size_t>(microbatch_) % holders.size()];
  }

  void check_forward() {
    forward_ = find(Kind::kForward);
    if (!forward_) {
      refuse(schedule_, {},
             what() + " is never forwarded; each stage forwards each of the " +
                 std::to_string(schedule_.num_microbatches) + " microbatches once, add " +
                 name(Kind::kForward) + " to the list of worker " + std::to_string(home()));
    }
    if (forward_.worker != home()) {
      refuse(schedule_, forward_,
             what() + " belongs to worker " + std::to_string(home()) +
                 ": of a stage held by r workers, microbatch i goes to replica i mod r");
    }
  }

  void check_backward() const {
    const Place full = find(Kind::kBackward);
    const Place input = find(Kind::kInputGradient);
    const Place weight = find(Kind::kWeightGradient);
    if (full && (input || weight)) {
      refuse(schedule_, input ? input : weight,
             what() + " has the full backward " + name(Kind::kBackward) +
                 " and a half of one; give B alone, or I and W");
    }
    if (!full && !input && !weight) {
      refuse(schedule_, {},
             what() + " is forwarded but never backwarded; add " + name(Kind::kBackward) +
                 " to the list of worker " + std::to_string(forward_.worker));
    }
    if (!full && (!input || !weight)) {
      refuse(schedule_, input ? input : weight,
             what() + " has only one half of its backward; add " +
                 name(input ? Kind::kWeightGradient : Kind::kInputGradient));
    }
    const Place gradient = full ? full : input;
    check_before(forward_, gradient, Kind::kForward);
    if (weight) {
      check_before(input, weight, Kind::kInputGradient);
    }
    if (const Place recompute = find(Kind::kRecompute)) {
      check_before(forward_, recompute, Kind::kForward);
      check_before(recompute, gradient, Kind::kRecompute);
    }
  }

  // Both must stand in one list, `first` (of kind `kind`) in a cell before that of `second`.
  void check_before(Place first, Place second, Kind kind) const {
    if (first.worker != second.worker) {
      refuse(schedule_, second,
             what() + " is split over workers " + std::to_string(first.worker) + " and " +
                 std::to_string(second.worker) + "; all its actions belong to one of them");
    }
    if (first.index >= second.index) {
      refuse(schedule_, second,
             "it needs " + name(kind) + ", which stands " +
                 (first.index == second.index ? "in the same cell" : "behind it in the list") +
                 "; move it behind " + name(kind));
    }
  }

  const Schedule& schedule_;
  const Places& places_;
  int stage_ = 0;
  int microbatch_ = 0;
  Place forward_;
};

}  // namespace

void check_order(const Schedule& schedule, const Places& places) {
  OrderCheck(schedule, places).run();
}

}  // namespace headrace::schedule
