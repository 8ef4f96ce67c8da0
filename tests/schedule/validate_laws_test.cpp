// What holds for every method, over stages x microbatches.
#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "headrace/schedule/passes.h"
#include "headrace/schedule/registry.h"
#include "headrace/schedule/validate.h"

#include "lists.h"

namespace headrace::schedule {
namespace {

class Laws : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int num_stages() const { return std::get<0>(GetParam()); }
  int num_microbatches() const { return std::get<1>(GetParam()); }

  Schedule make(const std::string& name) const {
    return generate(name, {.num_workers = num_stages(), .num_microbatches = num_microbatches()});
  }

  // f(stage) for every stage.
  template <typename F>
  std::vector<int> per_stage(const F& f) const {
    std::vector<int> values;
    for (int stage = 0; stage < num_stages(); ++stage) {
      values.push_back(f(stage));
    }
    return values;
  }
};

std::map<Kind, int> count_kinds(const Schedule& schedule) {
  std::map<Kind, int> counts;
  for (const auto& list : schedule.workers) {
    for (const Action& action : list) {
      ++counts[action.kind];
    }
  }
  return counts;
}

TEST_P(Laws, EveryMethodIsValidAndAddsGradientsAscending) {
  for (const Method& method : methods()) {
    const Schedule schedule = make(method.name);
    EXPECT_EQ(validate(schedule).gradient_order, GradientOrder::kAscending) << method.name;
    const auto counts = count_kinds(schedule);
    EXPECT_EQ(counts.at(Kind::kForward), num_stages() * num_microbatches()) << method.name;
    EXPECT_EQ(counts.at(Kind::kBackward), num_stages() * num_microbatches()) << method.name;
    EXPECT_EQ(counts.size(), 2U) << method.name;
    EXPECT_EQ(parse_csv(to_csv(schedule), schedule.name), schedule) << method.name;
  }
}

TEST_P(Laws, EveryPassKeepsEveryMethodValid) {
  for (const Method& method : methods()) {
    for (int present = 1; present <= num_microbatches(); ++present) {
      const Schedule kept = keep_microbatches(make(method.name), present);
      for (const Remat remat : {Remat::kNever, Remat::kExceptLast, Remat::kAlways}) {
        const Schedule whole = add_update(add_remat(kept, remat), {.tied_stages = {0}});
        EXPECT_NO_THROW(validate(whole)) << draw(whole);
        const int recomputed = remat == Remat::kNever    ? 0
                               : remat == Remat::kAlways ? present
                                                         : present - 1;
        EXPECT_EQ(count_kinds(whole)[Kind::kRecompute], num_stages() * recomputed);
        EXPECT_EQ(count_kinds(whole)[Kind::kUpdate], num_stages());
        EXPECT_EQ(count_kinds(whole)[Kind::kReduceTie], 1);
      }
      EXPECT_NO_THROW(validate(forward_only(kept)));
    }
  }
}

TEST_P(Laws, GPipeKeepsEveryMicrobatchAlive) {
  const Proof proof = validate(make("GPipe"));
  EXPECT_EQ(proof.live_activations, per_stage([&](int) { return num_microbatches(); }));
  EXPECT_EQ(proof.live_activations_until_weight, proof.live_activations);
  EXPECT_EQ(proof.forward_packets,
            per_stage([&](int stage) { return stage == 0 ? 0 : num_microbatches(); }));
  EXPECT_EQ(proof.backward_packets, per_stage([&](int stage) {
              return stage == num_stages() - 1 ? 0 : num_microbatches();
            }));
}

TEST_P(Laws, OneFOneBKeepsAtMostDepthActivationsAlive) {
  const int stages = num_stages();
  const Proof proof = validate(make("1F1B"));
  EXPECT_EQ(proof.live_activations,
            per_stage([&](int stage) { return std::min(stages - stage, num_microbatches()); }));
  // The stage before may run all its warm-up before this one begins.
  EXPECT_EQ(proof.forward_packets, per_stage([&](int stage) {
              return stage == 0 ? 0 : std::min(stages - stage + 1, num_microbatches());
            }));
  EXPECT_EQ(proof.backward_packets, per_stage([&](int stage) {
              return stage == stages - 1 ? 0 : std::min(stages - stage, num_microbatches());
            }));
}

TEST_P(Laws, SequentialKeepsOneActivationAliveAndOnePacketInFlight) {
  const int last = num_stages() - 1;
  const Proof proof = validate(make("Sequential"));
  EXPECT_EQ(proof.live_activations, per_stage([](int) { return 1; }));
  EXPECT_EQ(proof.forward_packets, per_stage([](int stage) { return stage == 0 ? 0 : 1; }));
  EXPECT_EQ(proof.backward_packets, per_stage([&](int stage) { return stage == last ? 0 : 1; }));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Laws,
                         testing::Combine(testing::Range(1, 9), testing::Range(1, 13)),
                         [](const auto& info) {
                           return "K" + std::to_string(std::get<0>(info.param)) + "M" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace headrace::schedule
