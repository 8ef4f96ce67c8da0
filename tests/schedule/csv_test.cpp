#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/schedule/registry.h"

#include "lists.h"

namespace headrace::schedule {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ScheduleCsv, HasOneRowPerWorkerAndOneCellPerAction) {
  EXPECT_EQ(to_csv(generate("1F1B", {.num_workers = 2, .num_microbatches = 3})),
            "0F0,0F1,0B0,0F2,0B1,0B2\n"
            "1F0,1B0,1F1,1B1,1F2,1B2\n");
}

TEST(ScheduleCsv, ReadsBackTheGeneratorsLists) {
  for (const Method& method : methods()) {
    const Schedule schedule = generate(method.name, {.num_workers = 3, .num_microbatches = 5});
    EXPECT_EQ(parse_csv(to_csv(schedule), schedule.name), schedule);
  }
}

TEST(ScheduleCsv, ReadsWhatSpreadsheetsAndTorchWrite) {
  const Schedule schedule = from_csv(
      "\xEF\xBB\xBF"
      "0F0,,0B0,\r\n,1F0, 1B0 ,\r\n\r\n,,\n");
  EXPECT_EQ(to_csv(schedule), "0F0,0B0\n1F0,1B0\n");
  EXPECT_EQ(schedule.num_stages, 2);
  EXPECT_EQ(schedule.num_microbatches, 1);
}

TEST(ScheduleCsv, FindsWhoHoldsWhat) {
  // Stage 0 at workers 2 (even microbatches) and 0 (odd ones).
  const Schedule schedule = from_csv("0F1,0B1\n1F0,1B0,1F1,1B1,0U\n0F0,0B0\n");
  EXPECT_EQ(schedule.placement, (std::vector<std::vector<int>>{{2, 0, 1}, {1}}));
}

TEST(ScheduleCsv, NamesRowAndColumnOfTheFirstBadCell) {
  EXPECT_THAT(refusal_of([] { from_csv("0F0,0B0\n1F0,,1Q0\n"); }),
              AllOf(HasSubstr("test: row 2, column 3:"), HasSubstr("'1Q0'")));
  EXPECT_THAT(refusal_of([] { from_csv("0F0," + std::string(1 << 20, 'x')); }),
              AllOf(HasSubstr("row 1, column 2"), HasSubstr("1,048,576 bytes")));
  EXPECT_THAT(refusal_of([] { from_csv(std::string("0F0,0B\0,0B0", 10)); }),
              HasSubstr("row 1, column 2"));
}

TEST(ScheduleCsv, RefusesWhatIsNoSchedule) {
  for (const std::string& csv :
       {std::string(), std::string("\n\n"), std::string(",,,\n"), std::string(200000, '\n'),
        std::string(1 << 20, '('), std::string("\xff\xfe\0F", 4)}) {
    EXPECT_LT(refusal_of([&] { from_csv(csv); }).size(), 1000U);
  }
}

TEST(ScheduleCsv, BoundsTheNumberOfActions) {
  std::string csv;
  for (int i = 0; i < 1000001; ++i) {
    csv += "0F0,";
  }
  EXPECT_THAT(refusal_of([&] { from_csv(csv); }), HasSubstr("more than 1,000,000 actions"));
}

}  // namespace
}  // namespace headrace::schedule
