#include <algorithm>
#include <map>
#include <utility>

#include "headrace/schedule/rules.h"
#include "headrace/schedule/text.h"

namespace headrace::schedule {

namespace {

// The order at the end of a stage. 0: of no concern here.
int rank_at_end(Kind kind) {
  switch (kind) {
    case Kind::kReduceGradient:
      return 1;
    case Kind::kWaitReduceGradient:
      return 2;
    case Kind::kReduceTie:
      return 3;
    case Kind::kNorm:
      return 4;
    case Kind::kUpdate:
      return 5;
    default:
      return 0;
  }
}

// Walks one worker's list and keeps what is where.
class Walk {
 public:
  Walk(const Schedule& schedule, const Places& places, int worker)
      : schedule_(schedule), places_(places), list_(schedule.workers[index_of(worker)]) {
    place_.worker = worker;
  }

  void run() {
    for (const Action& cell : list_) {
      for_each_part(cell, [&](const Action& action) {
        if (action.kind == Kind::kUnshard) {
          sharded_[action.stage] = true;  // until it runs
        } else if (action.kind == Kind::kBackward || action.kind == Kind::kWeightGradient) {
          ++gradients_left_[action.stage];
        }
      });
    }
    for (const Action& cell : list_) {
      ++place_.index;
      for_each_part(cell, [&](const Action& action) { step(action); });
    }
  }

 private:
  static std::size_t index_of(int number) { return static_cast<std::size_t>(number); }

  [[noreturn]] void fail(const std::string& message) const { refuse(schedule_, place_, message); }

  void step(const Action& action) {
    if (rank_at_end(action.kind) > 0) {
      end(action);
    } else if (is_compute(action.kind)) {
      compute(action);
    } else {
      shard(action);
      offload(action);
    }
  }

  void end(const Action& action) {
    const std::string kind(kind_name(action.kind));
    if (!places_.has_backward()) {
      fail(kind + " needs gradients, and no stage of this list has a backward; take it out");
    }
    if (gradients_left_[action.stage] > 0) {
      fail(kind + " of stage " + std::to_string(action.stage) + " comes before " +
           std::to_string(gradients_left_[action.stage]) +
           " of its gradients are there; move it behind the stage's last B or W");
    }
    int& reached = reached_[action.stage];
    if (rank_at_end(action.kind) <= reached) {
      fail(
          "at the end of a stage stand, each at most once and in this order, REDUCE_GRAD, "
          "WAIT_REDUCE_GRAD, REDUCE_TIE, NORM, U; this one comes too late or twice");
    }
    if (action.kind == Kind::kWaitReduceGradient && reached != 1) {
      fail("WAIT_REDUCE_GRAD has no REDUCE_GRAD before it");
    }
    reached = rank_at_end(action.kind);
  }

  void compute(const Action& action) {
    const auto sharded = sharded_.find(action.stage);
    if (sharded != sharded_.end() && sharded->second) {
      fail("the weights of stage " + std::to_string(action.stage) +
           " are sharded here; put UNSHARD before it");
    }
    const bool reads = action.kind != Kind::kForward;
    const auto away = away_.find({action.stage, action.microbatch});
    if (reads && away != away_.end() && away->second) {
      fail("what " + microbatch_text(action.stage, action.microbatch) +
           " keeps is offloaded here; put FETCH before it");
    }
    if (action.kind == Kind::kBackward || action.kind == Kind::kWeightGradient) {
      --gradients_left_[action.stage];
    }
  }

  void shard(const Action& action) {
    if (action.kind == Kind::kUnshard) {
      if (!sharded_[action.stage]) {
        fail("stage " + std::to_string(action.stage) + " is unsharded already");
      }
      sharded_[action.stage] = false;
    } else if (action.kind == Kind::kReshard) {
      if (!sharded_.contains(action.stage) || sharded_[action.stage]) {
        fail("stage " + std::to_string(action.stage) + " has no UNSHARD before it");
      }
      sharded_[action.stage] = true;
    } else if (action.kind == Kind::kWaitUnshard &&
               (!sharded_.contains(action.stage) || sharded_[action.stage])) {
      fail("WAIT_UNSHARD has no UNSHARD before it");
    }
  }

  void offload(const Action& action) {
    const std::pair<int, int> key{action.stage, action.microbatch};
    const std::string what = microbatch_text(action.stage, action.microbatch);
    const bool away = away_.contains(key) && away_[key];
    if (action.kind == Kind::kOffload) {
      const Place forward = places_.find(action.stage, Kind::kForward, action.microbatch);
      if (away || forward.worker != place_.worker || forward.index >= place_.index) {
        fail("OFFLOAD stands behind the F of its microbatch, and not behind another OFFLOAD");
      }
      away_[key] = true;
    } else if (action.kind == Kind::kFetch) {
      if (!away) {
        fail("FETCH: what " + what + " keeps is not offloaded here");
      }
      away_[key] = false;
    } else if ((action.kind == Kind::kWaitOffload && !away) ||
               (action.kind == Kind::kWaitFetch && (away || !away_.contains(key)))) {
      fail(std::string(kind_name(action.kind)) + " has nothing before it that it could wait for");
    }
  }

  const Schedule& schedule_;
  const Places& places_;
  const std::vector<Action>& list_;
  Place place_;
  std::map<int, int> gradients_left_;         // per stage: B and W still to come
  std::map<int, int> reached_;                // per stage: rank_at_end of the last one
  std::map<int, bool> sharded_;               // per stage, where the list has UNSHARD
  std::map<std::pair<int, int>, bool> away_;  // per stage and microbatch ever offloaded
};

}  // namespace

void check_tail(const Schedule& schedule, const Places& places) {
  for (int worker = 0; worker < schedule.num_workers(); ++worker) {
    Walk(schedule, places, worker).run();
  }
}

}  // namespace headrace::schedule
