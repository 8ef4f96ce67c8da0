#include "headrace/schedule/registry.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::schedule {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::string_view name, const Shape& shape) {
  try {
    generate(name, shape);
  } catch (const base::ConfigError& e) {
    return e.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Registry, KnowsMethodsByAnyCaseAndByTheirOtherNames) {
  for (const char* name : {"1F1B", "1f1b", "pipedream-FLUSH"}) {
    EXPECT_EQ(generate(name, {.num_workers = 2, .num_microbatches = 2}).name, "1F1B");
  }
  EXPECT_EQ(generate("gpipe", {}).name, "GPipe");
  EXPECT_EQ(generate("SEQUENTIAL", {.stages_per_worker = 1}).name, "Sequential");
}

TEST(Registry, NamesTheNearestForATypo) {
  EXPECT_THAT(refusal("GPip", {}), AllOf(HasSubstr("'GPip'"), HasSubstr("did you mean 'GPipe'")));
  EXPECT_THAT(refusal("", {}), HasSubstr("known: GPipe, 1F1B, Sequential"));
}

TEST(Registry, RefusesShapesThatBreakARule) {
  EXPECT_THAT(refusal("GPipe", {.num_workers = 0}), HasSubstr("workers must be at least 1"));
  EXPECT_THAT(refusal("GPipe", {.num_microbatches = -3}), HasSubstr("found -3"));
  EXPECT_THAT(refusal("1F1B", {.stages_per_worker = 2}), HasSubstr("one stage"));
  EXPECT_THAT(refusal("1F1B", {.stages_per_worker = -1}), HasSubstr("stages per worker"));
}

TEST(Registry, RefusesMoreActionsThanAnyoneRuns) {
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_THAT(refusal("GPipe", {.num_workers = 1000, .num_microbatches = 1000}),
              HasSubstr("1,000,000 actions"));
  EXPECT_THAT(refusal("GPipe", {kMost, kMost, kMost}), HasSubstr("1,000,000 actions"));
}

TEST(Registry, SaysOneSentencePerMethod) {
  for (const Method& method : methods()) {
    EXPECT_FALSE(method.summary.empty()) << method.name;
    EXPECT_THAT(method.summary, HasSubstr("bubble")) << method.name;
  }
}

}  // namespace
}  // namespace headrace::schedule
