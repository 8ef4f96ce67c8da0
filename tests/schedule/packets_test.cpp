// The computed bounds against every state that the workers can reach, on small cases.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/schedule/registry.h"
#include "headrace/schedule/validate.h"

#include "lists.h"

namespace headrace::schedule {
namespace {

using testing::ElementsAre;

// Explores all interleavings. A worker's state is how many of its actions have ended, twice that,
// plus one while the next is running. Knows only F and B, one worker per stage.
class Explorer {
 public:
  explicit Explorer(const Schedule& schedule) : schedule_(schedule) {
    forward.assign(static_cast<std::size_t>(schedule.num_stages), 0);
    backward = forward;
    visit(State(schedule.workers.size(), 0));
  }

  std::vector<int> forward;
  std::vector<int> backward;

 private:
  using State = std::vector<int>;

  const std::vector<Action>& list(std::size_t worker) const { return schedule_.workers[worker]; }

  // How many actions of the kind at the stage have ended (or begun) in the state.
  int count(const State& state, int stage, Kind kind, bool begun) const {
    if (stage < 0 || stage >= schedule_.num_stages) {
      return 0;
    }
    const auto worker =
        static_cast<std::size_t>(schedule_.placement[static_cast<std::size_t>(stage)][0]);
    const int num = (state[worker] + (begun ? 1 : 0)) / 2;
    int found = 0;
    for (int i = 0; i < num; ++i) {
      const Action& action = list(worker)[static_cast<std::size_t>(i)];
      found += action.stage == stage && action.kind == kind ? 1 : 0;
    }
    return found;
  }

  bool has_ended(const State& state, int stage, Kind kind, int microbatch) const {
    if (stage < 0 || stage >= schedule_.num_stages) {
      return true;
    }
    const auto worker =
        static_cast<std::size_t>(schedule_.placement[static_cast<std::size_t>(stage)][0]);
    for (int i = 0; i < state[worker] / 2; ++i) {
      const Action& action = list(worker)[static_cast<std::size_t>(i)];
      if (action.stage == stage && action.kind == kind && action.microbatch == microbatch) {
        return true;
      }
    }
    return false;
  }

  bool can_begin(const State& state, const Action& action) const {
    const int needed = action.kind == Kind::kForward ? action.stage - 1 : action.stage + 1;
    return has_ended(state, needed, action.kind, action.microbatch);
  }

  void visit(const State& first) {
    std::vector<State> open{first};
    seen_.insert(first);
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      look(state);
      for (std::size_t worker = 0; worker < state.size(); ++worker) {
        const bool running = state[worker] % 2 == 1;
        const auto next = static_cast<std::size_t>(state[worker] / 2);
        if (next == list(worker).size() || (!running && !can_begin(state, list(worker)[next]))) {
          continue;
        }
        State after = state;
        ++after[worker];
        if (seen_.insert(after).second) {
          open.push_back(std::move(after));
        }
      }
    }
  }

  void look(const State& state) {
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      const auto s = static_cast<std::size_t>(stage);
      forward[s] = std::max(forward[s], count(state, stage - 1, Kind::kForward, false) -
                                            count(state, stage, Kind::kForward, true));
      backward[s] = std::max(backward[s], count(state, stage + 1, Kind::kBackward, false) -
                                              count(state, stage, Kind::kBackward, true));
    }
  }

  const Schedule& schedule_;
  std::set<State> seen_;
};

void expect_exact(const Schedule& schedule) {
  const Proof proof = validate(schedule);
  const Explorer all(schedule);
  EXPECT_EQ(proof.forward_packets, all.forward) << draw(schedule);
  EXPECT_EQ(proof.backward_packets, all.backward) << draw(schedule);
}

TEST(Packets, AreExactForEveryMethodOnSmallShapes) {
  for (const Method& method : methods()) {
    for (int stages = 1; stages <= 3; ++stages) {
      for (int microbatches = 1; microbatches <= 5; ++microbatches) {
        expect_exact(
            generate(method.name, {.num_workers = stages, .num_microbatches = microbatches}));
      }
    }
    expect_exact(generate(method.name, {.num_workers = 4, .num_microbatches = 4}));
  }
}

TEST(Packets, AreExactWhereAWorkerHoldsSeveralStages) {
  expect_exact(from_csv("0F0,0F1,3F0,3B0,3F1,3B1,0B0,0B1\n1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n"));
  expect_exact(from_csv("0F0,2F0,0F1,2F1,2B1,2B0,0B1,0B0\n1F0,1F1,1B1,1B0\n"));
}

// Random orders of random placements, kept if they do not deadlock.
TEST(Packets, AreExactForRandomLists) {
  std::mt19937 random(7);
  int tried = 0;
  for (int round = 0; round < 3000 && tried < 150; ++round) {
    const int stages = 2 + static_cast<int>(random() % 3);
    const int workers = 1 + static_cast<int>(random() % static_cast<unsigned>(std::min(stages, 3)));
    const int microbatches = 1 + static_cast<int>(random() % 3);
    Schedule schedule;
    schedule.name = "random";
    schedule.num_stages = stages;
    schedule.num_microbatches = microbatches;
    schedule.workers.resize(static_cast<std::size_t>(workers));
    for (int stage = 0; stage < stages; ++stage) {
      const int worker =
          stage < workers ? stage : static_cast<int>(random() % static_cast<unsigned>(workers));
      schedule.placement.push_back({worker});
    }
    // A random merge of the microbatches' chains F0..FK-1 BK-1..B0 is a list that cannot deadlock;
    // swapping neighbours then makes lists that may.
    std::vector<int> step(static_cast<std::size_t>(microbatches), 0);
    for (int left = microbatches * stages * 2; left > 0; --left) {
      std::size_t m = random() % step.size();
      while (step[m] == 2 * stages) {
        m = (m + 1) % step.size();
      }
      const int at = step[m]++;
      const int stage = at < stages ? at : 2 * stages - 1 - at;
      const int worker = schedule.placement[static_cast<std::size_t>(stage)][0];
      schedule.workers[static_cast<std::size_t>(worker)].push_back(
          {.stage = stage,
           .kind = at < stages ? Kind::kForward : Kind::kBackward,
           .microbatch = static_cast<int>(m)});
    }
    auto& list = schedule.workers[random() % schedule.workers.size()];
    const std::size_t swapped = random() % list.size();
    std::swap(list[swapped], list[(swapped + 1) % list.size()]);
    try {
      validate(schedule);
    } catch (const base::ScheduleError&) {
      continue;
    }
    ++tried;
    expect_exact(schedule);
  }
  EXPECT_EQ(tried, 150);
}

TEST(Packets, OfAStageOnTwoWorkersAreTheSumOfBoth) {
  // Stage 0 forwards all four before anyone consumes: two wait for each replica of stage 1.
  const Proof proof =
      validate(from_csv("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1F2,1B0,1B2\n1F1,1F3,1B1,1B3\n"));
  EXPECT_THAT(proof.forward_packets, ElementsAre(0, 4));
  EXPECT_THAT(proof.backward_packets, ElementsAre(4, 0));
}

}  // namespace
}  // namespace headrace::schedule
