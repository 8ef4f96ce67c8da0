// Counted peak bytes of each stage against the published formulas.
#include <gtest/gtest.h>

#include "headrace/runtime/pipeline.h"

#include "tests/runtime/counted_stages.h"

namespace headrace::runtime {
namespace {

constexpr test::CountedStages kSize{
    .workers = 3, .pairs_per_stage = 128, .microbatches = 16, .rows = 1024, .width = 4};

void expect_formula(const std::string& schedule, Remat remat) {
  const std::vector<std::int64_t> counted = test::counted_peaks(kSize, schedule, remat);
  const std::vector<test::Bytes> formula = test::formula_units(kSize, schedule, remat);
  ASSERT_EQ(counted.size(), formula.size());
  for (std::size_t s = 0; s < counted.size(); ++s) {
    const double units = static_cast<double>(counted[s]) / static_cast<double>(kSize.unit_bytes());
    EXPECT_GE(units, 0.95 * formula[s].least) << schedule << " stage " << s;
    EXPECT_LE(units, 1.05 * formula[s].most) << schedule << " stage " << s;
  }
}

TEST(StageMemory, GPipeKeepsEveryLayerOfEveryMicrobatch) {
  expect_formula("GPipe", Remat::kNever);
}

TEST(StageMemory, RematAlwaysKeepsBoundariesAndOneMicrobatchOfLayers) {
  expect_formula("GPipe", Remat::kAlways);
}

TEST(StageMemory, RematExceptLastKeepsTwoMicrobatchesOfLayers) {
  expect_formula("GPipe", Remat::kExceptLast);
}

TEST(StageMemory, OneFOneBKeepsAsManyMicrobatchesAsStagesFollow) {
  expect_formula("1F1B", Remat::kNever);
}

}  // namespace
}  // namespace headrace::runtime
