#include "headrace/schedule/validate.h"

#include <ctime>
#include <limits>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/schedule/passes.h"
#include "headrace/schedule/registry.h"

#include "lists.h"

namespace headrace::schedule {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& csv) {
  return refusal_of([&] { validate(from_csv(csv)); });
}

// Each list breaks one rule; the message must hold the words and the grid with the mark.
struct Broken {
  const char* name;
  const char* csv;
  const char* words;
  const char* grid;
};

void PrintTo(const Broken& broken, std::ostream* stream) {
  *stream << broken.csv;
}

class BrokenList : public testing::TestWithParam<Broken> {};

TEST_P(BrokenList, IsRefusedWithRuleAndPlace) {
  EXPECT_THAT(
      refusal(GetParam().csv),
      AllOf(HasSubstr("schedule 'test'"), HasSubstr(GetParam().words), HasSubstr(GetParam().grid)));
}

const Broken kBroken[] = {
    {"MissingForward", "0F0,0B0,0F1,0B1\n1F0,1B0,1B1\n", "add 1F1 to the list of worker 1", "F1"},
    {"MissingBackward", "0F0,0B0\n1F0\n", "microbatch 0 of stage 1 is forwarded but never", "F0"},
    {"ForwardTwice", "0F0,0F0,0B0\n", "before it already", "F0 [F0] B0"},
    {"BackwardTwice", "0F0,0B0,0B0\n", "take one of them out", "F0 B0 [B0]"},
    {"ForwardTwiceInOneCell", "(0F0;0F0)OVERLAP_F_B,0B0\n", "before it already", "["},
    {"BackwardFirst", "0B0,0F0\n", "behind it in the list", "[B0] F0"},
    {"BackwardInTheCellOfItsForward", "(0F0;0B0)OVERLAP_F_B\n", "in the same cell", "["},
    {"RecomputeFirst", "0R0,0F0,0B0\n", "it needs 0F0", "[R0] F0 B0"},
    {"RecomputeAfterBackward", "0F0,0B0,0R0\n", "it needs 0R0", "F0 [B0] R0"},
    {"RecomputeTwice", "0F0,0R0,0R0,0B0\n", "before it already", "F0 R0 [R0] B0"},
    {"RecomputeWithoutBackward", "0F0,0R0\n", "no backward after it", "F0 [R0]"},
    {"OnlyInputHalf", "0F0,0I0\n", "one half of its backward; add 0W0", "F0 [I0]"},
    {"OnlyWeightHalf", "0F0,0W0\n", "one half of its backward; add 0I0", "F0 [W0]"},
    {"WeightHalfFirst", "0F0,0W0,0I0\n", "it needs 0I0", "F0 [W0] I0"},
    {"FullAndHalf", "0F0,0B0,0W0\n", "give B alone, or I and W", "F0 B0 [W0]"},
    {"StageGap", "0F0,0B0\n2F0,2B0\n", "stage 1 is on no worker", "2F0"},
    {"IdleWorker", "0F0,0B0\n\n1F0,1B0\n", "worker 1 holds no stage", "0F0"},
    {"NoStage", "0F0,0B0,F1\n", "no stage given", "[F1]"},
    {"NoMicrobatch", "0F0,0B0,0F\n", "needs the number of a microbatch, such as 0F0", "[F]"},
    {"UpdateOfAMicrobatch", "0F0,0B0,0U0\n", "U takes no microbatch", "[U0]"},
    {"PartsOfAForward", "(0F0;0F1)F2,0B0\n", "F takes no parts", "["},
    {"OverlapOfOne", "(0F0)OVERLAP_F_B,0B0\n", "at least two parts", "["},
    {"OverlapInOverlap", "(0F0;(0F1;0F2)OVERLAP_F_B)OVERLAP_F_B\n", "inside another", "["},
    {"PeerOfAForward", "0F0>1,0B0\n1F0,1B0\n", "only SEND and RECV do", "[F0>1]"},
    {"VersionThatNobodyMakes", "0F0@1,0B0\n", "run on version 0", "[F0@1]"},
    {"WrongReplica", "0F0#1,0B0\n", "this worker is replica 0", "[F0#1]"},
    {"SplitOverWorkers", "0F0,0F1,0B1\n0B0,0F2,0B2\n", "split over workers 0 and 1", "[0B0]"},
    {"NotAtItsReplica", "0F0,0F1,0B0,0B1\n0F2,0B2\n", "belongs to worker 1", "[0F1]"},
    {"UpdateBeforeGradients", "0F0,0F1,0B0,0U,0B1\n", "1 of its gradients", "[U]"},
    {"UpdateTwice", "0F0,0B0,0U,0U\n", "too late or twice", "U [U]"},
    {"NormAfterUpdate", "0F0,0B0,0U,0NORM\n", "in this order", "[NORM]"},
    {"TieAfterNorm", "0F0,0B0,0NORM,0REDUCE_TIE\n", "in this order", "[REDUCE_TIE]"},
    {"UpdateWithoutBackward", "0F0,0U\n", "no stage of this list has a backward", "F0 [U]"},
    {"WaitForNoReduction", "0F0,0B0,0WAIT_REDUCE_GRAD\n", "no REDUCE_GRAD before", "["},
    {"RunsOnAShard", "0F0,0UNSHARD,0B0\n", "put UNSHARD before it", "[F0]"},
    {"RunsAfterReshard", "0UNSHARD,0F0,0RESHARD,0B0\n", "put UNSHARD before it", "[B0]"},
    {"UnshardTwice", "0UNSHARD,0UNSHARD,0F0,0B0\n", "unsharded already", "[UNSHARD]"},
    {"ReshardOfAWhole", "0RESHARD,0F0,0B0\n", "no UNSHARD before it", "[RESHARD]"},
    {"WaitForNoUnshard", "0WAIT_UNSHARD,0UNSHARD,0F0,0B0\n", "no UNSHARD before", "["},
    {"BackwardOfWhatIsAway", "0F0,0OFFLOAD0,0B0\n", "put FETCH before it", "[B0]"},
    {"OffloadFirst", "0OFFLOAD0,0F0,0B0\n", "behind the F", "[OFFLOAD0]"},
    {"FetchOfWhatIsHere", "0F0,0FETCH0,0B0\n", "not offloaded here", "[FETCH0]"},
    {"WaitForNoFetch", "0F0,0WAIT_FETCH0,0B0\n", "nothing before it", "[WAIT_FETCH0]"},
    {"SendWithoutReceive", "0F0,0SEND_F0,0B0\n1F0,1B0\n", "nobody receives it", "[SEND_F0]"},
    {"ReceiveWithoutSend", "0F0,0B0\n1RECV_F0,1F0,1B0\n", "nobody sends it", "[RECV_F0]"},
    {"SendFirst", "0SEND_F0,0F0,0B0\n1RECV_F0,1F0,1B0\n", "it sends before", "[SEND_F0]"},
    {"ReceiveLate", "0F0,0SEND_F0,0B0\n1F0,1RECV_F0,1B0\n", "it receives after", "[RECV_F0]"},
    {"SendTwice", "0F0,0SEND_F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n", "lists already", "["},
    {"SendOverTheEdge", "0F0,0SEND_F0,0B0\n", "no other stage", "[SEND_F0]"},
    {"SendToItself", "0F0,0SEND_F0>0,0B0\n", "no other stage", "[SEND_F0>0]"},
    {"GradientSentByAForward", "0F0,0RECV_B0\n1F0,1SEND_B0\n", "is not in this worker's", "["},
};

INSTANTIATE_TEST_SUITE_P(Rules, BrokenList, testing::ValuesIn(kBroken),
                         [](const auto& info) { return info.param.name; });

TEST(Validate, NamesTheCycleOfADeadlock) {
  const std::string message = refusal("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  EXPECT_THAT(message, HasSubstr("deadlock"));
  EXPECT_THAT(message, HasSubstr("worker 0 stands at 0B0, which needs 1B0, which stands behind 1F1 "
                                 "in the list of worker 1"));
  EXPECT_THAT(message, HasSubstr("worker 1 stands at 1F1, which needs 0F1, which stands behind 0B0 "
                                 "in the list of worker 0"));
  EXPECT_THAT(message, HasSubstr("worker 0 | F0  ![B0] F1 B1"));
}

TEST(Validate, LeavesOutOfTheCycleWhoMerelyWaitsForIt) {
  // Workers 1 and 2 block each other; worker 0 waits for them.
  const std::string message = refusal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F1,2B1,2F0,2B0\n");
  EXPECT_THAT(message, HasSubstr("deadlock: worker 1 stands at 1B0"));
}

TEST(Validate, FindsADeadlockInsideOneList) {
  EXPECT_THAT(refusal("0F0,2F0,1F0,2B0,1B0,0B0\n"),
              AllOf(HasSubstr("deadlock"), HasSubstr("0F0 ![2F0]")));
  EXPECT_THAT(refusal("(0F0;1F0)OVERLAP_F_B,1B0,0B0\n"), HasSubstr("deadlock"));
}

TEST(Validate, FindsADeadlockOfTheEnd) {
  // 0U needs the norm, to which stage 1 adds only afterwards.
  EXPECT_THAT(refusal("0F0,1F0,1B0,0B0,0NORM,0U,1NORM,1U\n"),
              AllOf(HasSubstr("deadlock"), HasSubstr("0U"), HasSubstr("1NORM")));
}

TEST(Validate, KeepsMessagesShortForLongCycles) {
  // Worker w holds stages w and w + 40 and begins with the later one: a ring of 40 workers.
  std::string csv;
  for (int worker = 0; worker < 40; ++worker) {
    const std::string early = std::to_string(worker);
    const std::string late = std::to_string(worker + 40);
    csv += late + "F0," + early + "F0," + late + "B0," + early + "B0\n";
  }
  EXPECT_THAT(refusal(csv), HasSubstr("and so on over 40 workers"));
  EXPECT_LT(refusal(csv).size(), 4000U);
}

TEST(Validate, AcceptsStepsWithAllThatStandsBetweenAndBehind) {
  for (const char* csv : {
           "0F0,0R0,0B0,0REDUCE_TIE,0NORM,0U\n1F0,1B0,1REDUCE_TIE,1NORM,1U\n",
           "0F0,0F1,0I0,0F2,0I1,0W0,0I2,0W1,0W2,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0NORM,0U\n",
           "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
           "0F0,0SEND_F0>2[skip],0RECV_B0<2[skip],0B0\n1F0,1B0\n"
           "2RECV_F0<0[skip],2F0,2B0,2SEND_B0>0[skip]\n",
           "0UNSHARD,0WAIT_UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD,0U\n",
           "0F0,0OFFLOAD0,0F1,0WAIT_OFFLOAD0,0FETCH0,0WAIT_FETCH0,0B0,0B1\n",
           "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n",
           "0F0@0,0B0\n",
           "0F0#0,0B0#0,0F2,0B2\n0F1#1,0B1\n",
           "0F0,1F0,1B0,0B0,0NORM,1NORM,0U,1U\n",
       }) {
    EXPECT_NO_THROW(validate(from_csv(csv))) << csv;
  }
}

TEST(Validate, TellsWhenGradientsAreNotAddedAscending) {
  EXPECT_EQ(validate(from_csv("0F0,0F1,0B0,0B1\n")).gradient_order, GradientOrder::kAscending);
  EXPECT_EQ(validate(from_csv("0F0,0F1,0B1,0B0\n")).gradient_order, GradientOrder::kOther);
  EXPECT_EQ(validate(from_csv("0F0,0F1,0I1,0I0,0W0,0W1\n")).gradient_order,
            GradientOrder::kAscending);
  EXPECT_EQ(validate(from_csv("0F0,0F1,0I0,0I1,0W1,0W0\n")).gradient_order, GradientOrder::kOther);
}

TEST(Validate, CountsLiveActivationsToTheInputAndToTheWeightHalf) {
  const Proof split = validate(from_csv("0F0,0I0,0F1,0I1,0W0,0W1\n"));
  EXPECT_THAT(split.live_activations, ElementsAre(1));
  EXPECT_THAT(split.live_activations_until_weight, ElementsAre(2));
  const Proof overlapped = validate(from_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"));
  EXPECT_THAT(overlapped.live_activations, ElementsAre(2));
}

TEST(Validate, ProvesForwardOnlyLists) {
  const Proof proof =
      validate(forward_only(generate("1F1B", {.num_workers = 2, .num_microbatches = 3})));
  EXPECT_THAT(proof.live_activations, ElementsAre(0, 0));
  EXPECT_THAT(proof.forward_packets, ElementsAre(0, 3));
  EXPECT_THAT(proof.backward_packets, ElementsAre(0, 0));
}

TEST(Validate, RefusesSchedulesThatAreNoSchedule) {
  Schedule empty;
  EXPECT_THAT(refusal_of([&] { validate(empty); }), HasSubstr("each must be at least 1"));
  Schedule misplaced = from_csv("0F0,0B0\n");
  misplaced.placement = {{3}};
  EXPECT_THAT(refusal_of([&] { validate(misplaced); }), HasSubstr("does not exist"));
  misplaced.placement = {{0, 0}};
  EXPECT_THAT(refusal_of([&] { validate(misplaced); }), HasSubstr("twice on one"));
  misplaced.placement = {};
  EXPECT_THAT(refusal_of([&] { validate(misplaced); }), HasSubstr("places 0 stages"));
  Schedule few = from_csv("0F0,0B0\n");
  few.num_microbatches = 1 << 30;
  EXPECT_THAT(refusal_of([&] { validate(few); }), HasSubstr("microbatch 1 of stage 0"));
}

TEST(Validate, RefusesTheLargestNumbersToo) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const int stage : {kMost, std::numeric_limits<int>::min(), -2}) {
    for (const Kind kind : all_kinds()) {
      Schedule schedule = from_csv("0F0,0B0\n");
      schedule.workers[0].push_back({.stage = stage, .kind = kind, .microbatch = kMost});
      EXPECT_FALSE(refusal_of([&] { validate(schedule); }).empty());
    }
  }
}

TEST(Validate, RefusesSparseHugeNumbersAtOnce) {
  EXPECT_THAT(refusal("0F0,0B0\n999999F1000000,0F5\n"), HasSubstr("on no worker"));
  EXPECT_THAT(refusal("0F1000000,0B1000000\n"), HasSubstr("microbatch 0 of stage 0"));
}

TEST(Validate, TakesWellUnderASecondForLargeLists) {
  const Schedule schedule = add_update(
      add_remat(generate("1F1B", {.num_workers = 32, .num_microbatches = 512}), Remat::kAlways),
      {});
  // Processor time: other programs on the machine do not count.
  const std::clock_t start = std::clock();
  EXPECT_NO_THROW(validate(schedule));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(seconds, 0.5);
#else
  EXPECT_LT(seconds, 10);
#endif
}

}  // namespace
}  // namespace headrace::schedule
