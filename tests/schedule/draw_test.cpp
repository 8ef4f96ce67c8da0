#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/schedule/passes.h"
#include "headrace/schedule/registry.h"

#include "lists.h"

namespace headrace::schedule {
namespace {

using testing::HasSubstr;

TEST(Draw, SetsActionsAtTheSlotWhereTheyCanRun) {
  EXPECT_EQ(draw(generate("GPipe", {.num_workers = 3, .num_microbatches = 2})),
            "worker 0 | F0 F1             B0 B1\n"
            "worker 1 |    F0 F1       B0 B1\n"
            "worker 2 |       F0 F1 B0 B1\n");
}

TEST(Draw, ShowsStagesWhereAWorkerHoldsOthersThanItsOwn) {
  EXPECT_EQ(draw(from_csv("0F0,2F0,2B0,0B0\n1F0,1B0\n")),
            "worker 0 | 0F0     2F0 2B0     0B0\n"
            "worker 1 |     1F0         1B0\n");
}

TEST(Draw, SetsTheMarkInBrackets) {
  EXPECT_EQ(draw(from_csv("0F0,0B0\n"), 0, 1), "worker 0 | F0 [B0]\n");
}

TEST(Draw, PutsWhatNeverStartsBehindAnExclamationMark) {
  EXPECT_EQ(draw(from_csv("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n")),
            "worker 0 | F0  !B0 F1 B1\n"
            "worker 1 | !F1 B1  F0 B0\n");
}

TEST(Draw, ShowsTheEndOfAStepAsItIsOrdered) {
  const Schedule schedule = add_update(
      generate("Sequential", {.num_workers = 2, .num_microbatches = 1}), {.tied_stages = {0, 1}});
  EXPECT_EQ(draw(schedule),
            "worker 0 | F0       B0         REDUCE_TIE NORM U\n"
            "worker 1 |    F0 B0 REDUCE_TIE            NORM U\n");
}

TEST(DrawNear, CutsLargeGridsDownToTheirMark) {
  const Schedule schedule = generate("1F1B", {.num_workers = 40, .num_microbatches = 300});
  const std::string grid = draw_near(schedule, 20, 100);
  EXPECT_EQ(std::count(grid.begin(), grid.end(), '\n'), 13);
  EXPECT_LT(grid.size(), 3000U);
  EXPECT_THAT(grid, HasSubstr("["));
  EXPECT_THAT(grid, HasSubstr("workers 14 to 25 of 40"));
}

TEST(DrawNear, DrawsListsThatBreakEveryRule) {
  for (const char* csv :
       {"7B3\n", "0U,0U,0F0\n", "(0F0;0F0)OVERLAP_F_B\n", "F\n", "0SEND_F0>0\n"}) {
    EXPECT_FALSE(draw_near(from_csv(csv), 0, 0).empty());
    EXPECT_FALSE(draw_near(from_csv(csv), -1, -1).empty());
    EXPECT_FALSE(draw_near(from_csv(csv), 99, 99).empty());
  }
}

}  // namespace
}  // namespace headrace::schedule
