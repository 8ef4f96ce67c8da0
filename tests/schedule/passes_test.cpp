#include "headrace/schedule/passes.h"

#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/schedule/registry.h"
#include "headrace/schedule/validate.h"

#include "lists.h"

namespace headrace::schedule {
namespace {

std::string after(const std::string& csv, Schedule (*pass)(Schedule)) {
  return to_csv(pass(from_csv(csv)));
}

TEST(KeepMicrobatches, DeletesTheAbsentOnesAndKeepsTheOrder) {
  const Schedule full = generate("1F1B", {.num_workers = 3, .num_microbatches = 4});
  const Schedule kept = keep_microbatches(full, 2);
  EXPECT_EQ(to_csv(kept), "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1\n");
  EXPECT_EQ(kept.num_microbatches, 2);
  EXPECT_NO_THROW(validate(kept));
}

TEST(KeepMicrobatches, LeavesAFullMiniBatchAlone) {
  const Schedule full = generate("GPipe", {.num_workers = 2, .num_microbatches = 3});
  EXPECT_EQ(keep_microbatches(full, 3), full);
  EXPECT_EQ(keep_microbatches(full, 9), full);
}

TEST(KeepMicrobatches, TakesOverlappedCellsApart) {
  EXPECT_EQ(after("(0F0;0B1)OVERLAP_F_B,(0F2;0B2)OVERLAP_F_B,(0F0;0B0)OVERLAP_F_B,0U\n",
                  [](Schedule s) { return keep_microbatches(std::move(s), 1); }),
            "0F0,(0F0;0B0)OVERLAP_F_B,0U\n");
}

TEST(AddRemat, PutsRecomputationBeforeEachBackward) {
  const Schedule schedule = generate("GPipe", {.num_workers = 1, .num_microbatches = 2});
  EXPECT_EQ(to_csv(add_remat(schedule, Remat::kAlways)), "0F0,0F1,0R0,0B0,0R1,0B1\n");
  EXPECT_EQ(to_csv(add_remat(schedule, Remat::kExceptLast)), "0F0,0F1,0R0,0B0,0B1\n");
  EXPECT_EQ(add_remat(schedule, Remat::kNever), schedule);
}

TEST(AddRemat, TakesTheLastPresentMicrobatchForTheLast) {
  const Schedule schedule =
      keep_microbatches(generate("GPipe", {.num_workers = 1, .num_microbatches = 3}), 2);
  EXPECT_EQ(to_csv(add_remat(schedule, Remat::kExceptLast)), "0F0,0F1,0R0,0B0,0B1\n");
}

TEST(AddRemat, PutsItBeforeTheFirstHalfOfASplitBackward) {
  EXPECT_EQ(after("0F0,0I0,0W0\n", [](Schedule s) { return add_remat(s, Remat::kAlways); }),
            "0F0,0R0,0I0,0W0\n");
}

TEST(AddRemat, PutsItBeforeAnOverlappedCell) {
  EXPECT_EQ(after("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n",
                  [](Schedule s) { return add_remat(s, Remat::kAlways); }),
            "0F0,0R0,(0F1;0B0)OVERLAP_F_B,0R1,0B1\n");
}

TEST(AddUpdate, SumsTiesThenTakesTheNormThenUpdates) {
  const Schedule schedule = from_csv("0F0,2F0,2B0,0B0\n1F0,1B0\n");
  const Schedule ended = add_update(schedule, {.tied_stages = {0, 1}});
  EXPECT_EQ(to_csv(ended),
            "0F0,2F0,2B0,0B0,0REDUCE_TIE,0NORM,2NORM,0U,2U\n"
            "1F0,1B0,1REDUCE_TIE,1NORM,1U\n");
  EXPECT_NO_THROW(validate(ended));
}

TEST(AddUpdate, EndsWithTheNormWhereTheCallerUpdates) {
  EXPECT_EQ(after("0F0,0B0\n", [](Schedule s) { return add_update(s, {.update = false}); }),
            "0F0,0B0,0NORM\n");
}

TEST(AddUpdate, EndsEveryReplica) {
  EXPECT_EQ(after("0F0,0B0\n0F1,0B1\n", [](Schedule s) { return add_update(s, {}); }),
            "0F0,0B0,0NORM,0U\n0F1,0B1,0NORM,0U\n");
}

TEST(AddUpdate, TakesOnlyStagesThatExistAscending) {
  const Schedule schedule = generate("GPipe", {.num_workers = 2, .num_microbatches = 1});
  for (const std::vector<int>& tied : {std::vector<int>{1, 0}, std::vector<int>{0, 0},
                                       std::vector<int>{2}, std::vector<int>{-1}}) {
    EXPECT_THROW(add_update(schedule, {.tied_stages = tied}), std::logic_error);
  }
}

TEST(ForwardOnly, KeepsForwardsAndTheirTransfers) {
  EXPECT_EQ(
      after("0F0,0SEND_F0,0RECV_B0,0B0,0NORM,0U\n1RECV_F0,1F0,1R0,1B0,1SEND_B0\n", forward_only),
      "0F0,0SEND_F0\n1RECV_F0,1F0\n");
  EXPECT_NO_THROW(
      validate(forward_only(generate("1F1B", {.num_workers = 3, .num_microbatches = 4}))));
}

TEST(RematNames, ReadBackAsWritten) {
  for (const Remat remat : {Remat::kNever, Remat::kExceptLast, Remat::kAlways}) {
    EXPECT_EQ(remat_from_text(remat_name(remat)), remat);
  }
  EXPECT_EQ(remat_name(Remat::kExceptLast), "except_last");
  EXPECT_THROW(remat_from_text("Always"), base::ConfigError);
}

}  // namespace
}  // namespace headrace::schedule
