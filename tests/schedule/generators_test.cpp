// The grids as drawn in the generators' files; the laws over all shapes are in
// validate_laws_test.cpp.
#include <gtest/gtest.h>

#include "headrace/schedule/registry.h"

#include "lists.h"

namespace headrace::schedule {
namespace {

std::string drawn(const char* name, int num_workers, int num_microbatches) {
  return draw(generate(name, {.num_workers = num_workers, .num_microbatches = num_microbatches}));
}

TEST(GPipe, IsDrawnAsInThePaperWithBackwardsAscending) {
  EXPECT_EQ(drawn("GPipe", 3, 4),
            "worker 0 | F0 F1 F2 F3             B0 B1 B2 B3\n"
            "worker 1 |    F0 F1 F2 F3       B0 B1 B2 B3\n"
            "worker 2 |       F0 F1 F2 F3 B0 B1 B2 B3\n");
}

TEST(OneFOneB, IsDrawnAsInThePaper) {
  EXPECT_EQ(drawn("1F1B", 3, 4),
            "worker 0 | F0 F1 F2       B0 F3 B1    B2    B3\n"
            "worker 1 |    F0 F1    B0 F2 B1 F3 B2    B3\n"
            "worker 2 |       F0 B0 F1 B1 F2 B2 F3 B3\n");
}

TEST(OneFOneB, TakesFewerMicrobatchesThanStages) {
  EXPECT_EQ(drawn("1F1B", 4, 2),
            "worker 0 | F0 F1                B0    B1\n"
            "worker 1 |    F0 F1          B0    B1\n"
            "worker 2 |       F0 F1    B0    B1\n"
            "worker 3 |          F0 B0 F1 B1\n");
}

TEST(Sequential, LetsOneMicrobatchGoThroughAtATime) {
  EXPECT_EQ(drawn("Sequential", 3, 2),
            "worker 0 | F0             B0 F1             B1\n"
            "worker 1 |    F0       B0       F1       B1\n"
            "worker 2 |       F0 B0             F1 B1\n");
}

TEST(EveryMethod, OnOneWorkerRunsEverythingThere) {
  EXPECT_EQ(drawn("GPipe", 1, 2), "worker 0 | F0 F1 B0 B1\n");
  EXPECT_EQ(drawn("1F1B", 1, 2), "worker 0 | F0 B0 F1 B1\n");
  EXPECT_EQ(drawn("Sequential", 1, 2), "worker 0 | F0 B0 F1 B1\n");
}

}  // namespace
}  // namespace headrace::schedule
