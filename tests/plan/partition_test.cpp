#include "headrace/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const base::ConfigError& e) {
    return e.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

double dearest(const Cut& cut, const std::vector<double>& costs) {
  const auto stages = stage_costs(cut, costs);
  return *std::max_element(stages.begin(), stages.end());
}

// Every cut, in the order "smallest stages from the front first"; keeps the first of the best.
Cut try_every_cut(const std::vector<double>& costs, int num_stages) {
  std::optional<Cut> best;
  const std::function<void(Cut)> extend = [&](Cut cut) {
    const int num_layers = static_cast<int>(costs.size());
    const int left = num_stages - cut.num_stages();
    if (left == 0) {
      if (cut.first.back() == num_layers &&
          (!best || dearest(cut, costs) < dearest(*best, costs))) {
        best = cut;
      }
      return;
    }
    for (int end = cut.first.back() + 1; end <= num_layers - (left - 1); ++end) {
      Cut longer = cut;
      longer.first.push_back(end);
      extend(longer);
    }
  };
  extend(Cut{{0}});
  return *best;
}

TEST(CutByCost, IsTheBestOfAllCutsFromTheFrontOnTies) {
  std::mt19937 random(11);
  for (int num_layers = 1; num_layers <= 10; ++num_layers) {
    for (int num_stages = 1; num_stages <= std::min(4, num_layers); ++num_stages) {
      for (int round = 0; round < 40; ++round) {
        // Even rounds: small integers with zeros and many ties. Odd ones: fractions.
        std::vector<double> costs;
        for (int layer = 0; layer < num_layers; ++layer) {
          costs.push_back(round % 2 == 0 ? random() % 4 : (random() % 1000) / 7.0);
        }
        EXPECT_EQ(cut_by_cost(costs, num_stages), try_every_cut(costs, num_stages))
            << testing::PrintToString(costs) << " in " << num_stages;
      }
    }
  }
}

TEST(CutByCost, BalancesWhatAGreedyCutWouldNot) {
  EXPECT_THAT(cut_by_cost(std::vector<double>{1, 1, 1, 3, 3}, 2).first, ElementsAre(0, 3, 5));
  EXPECT_THAT(cut_by_cost(std::vector<double>{5, 1, 1, 1, 1, 1}, 3).first, ElementsAre(0, 1, 2, 6));
  EXPECT_THAT(cut_by_cost(std::vector<double>{0, 0, 0}, 3).first, ElementsAre(0, 1, 2, 3));
}

TEST(CutByCost, RefusesSumsThatOverflow) {
  const std::vector<double> costs(4, std::numeric_limits<double>::max());
  EXPECT_THAT(refusal([&] { cut_by_cost(costs, 2); }), HasSubstr("larger unit"));
}

TEST(CutByCost, RefusesMoreStagesThanLayersAndBadCosts) {
  EXPECT_THAT(refusal([] {
                cut_by_cost(std::vector<double>{1, 2}, 3);
              }),
              AllOf(HasSubstr("2 layers"), HasSubstr("3 stages")));
  EXPECT_THAT(refusal([] { cut_by_cost(std::vector<double>{1, 2}, 0); }), HasSubstr("found 0"));
  EXPECT_THAT(refusal([] { cut_by_cost({}, 1); }), HasSubstr("0 layers"));
  EXPECT_THAT(refusal([] {
                cut_by_cost(std::vector<double>{1, -2}, 1);
              }),
              AllOf(HasSubstr("layer 1"), HasSubstr("found -2")));
  EXPECT_THAT(refusal([] { cut_by_cost(std::vector<double>{NAN}, 1); }), HasSubstr("found nan"));
  EXPECT_THAT(refusal([] { cut_by_cost(std::vector<double>{INFINITY}, 1); }),
              HasSubstr("found inf"));
}

TEST(CutByHand, TakesTheNumbersGiven) {
  EXPECT_THAT(cut_by_hand(std::vector<int>{4, 1, 2}, 7).first, ElementsAre(0, 4, 5, 7));
}

TEST(CutByHand, RefusesNumbersThatDoNotAddUp) {
  EXPECT_THAT(refusal([] {
                cut_by_hand(std::vector<int>{4, 2}, 7);
              }),
              AllOf(HasSubstr("4 + 2 = 6"), HasSubstr("7 layers")));
  EXPECT_THAT(refusal([] { cut_by_hand(std::vector<int>{4, 0, 3}, 7); }), HasSubstr("stage 1"));
  EXPECT_THAT(refusal([] { cut_by_hand(std::vector<int>{9, -2}, 7); }), HasSubstr("gets -2"));
  EXPECT_THAT(refusal([] { cut_by_hand({}, 7); }), HasSubstr("empty"));
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_THAT(refusal([] {
                cut_by_hand(std::vector<int>{kMost, kMost}, 7);
              }),
              HasSubstr("4294967294"));
}

TEST(Cut, IsPricedAndPrintedByStage) {
  const Cut cut{{0, 4, 5, 7}};
  EXPECT_THAT(stage_costs(cut, std::vector<double>{1, 2, 3, 4, 5, 6, 7}), ElementsAre(10, 5, 13));
  EXPECT_EQ(to_text(cut), "0-3 | 4 | 5-6");
}

}  // namespace
}  // namespace headrace::plan
