#include "headrace/optim/lr_schedule.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::optim {
namespace {

TEST(LrSchedule, IsConstantByDefault) {
  const LrSchedule schedule{.lr = 0.5};
  for (const std::int64_t step : {0, 1, 1000000}) {
    EXPECT_EQ(schedule.at(step), 0.5);
  }
}

TEST(LrSchedule, WarmsUpLinearly) {
  const LrSchedule schedule{.lr = 8.0, .warmup_steps = 4};
  EXPECT_EQ(schedule.at(0), 2.0);
  EXPECT_EQ(schedule.at(1), 4.0);
  EXPECT_EQ(schedule.at(2), 6.0);
  EXPECT_EQ(schedule.at(3), 8.0);
  EXPECT_EQ(schedule.at(4), 8.0);
}

//  step     0    1    2 ... 4    5    6    7    8    9   10   11
//  lr       1/2  1    1     1    1   .8   .6   .4   .2    0    0     (floor 0)
TEST(LrSchedule, DecaysLinearlyOverTheLastShare) {
  const LrSchedule schedule{
      .lr = 1.0, .warmup_steps = 2, .total_steps = 10, .decay = Decay::kLinear, .decay_ratio = 0.5};
  EXPECT_EQ(schedule.at(0), 0.5);
  for (const std::int64_t step : {1, 2, 4, 5}) {
    EXPECT_EQ(schedule.at(step), 1.0) << step;
  }
  EXPECT_DOUBLE_EQ(schedule.at(6), 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(9), 0.2);
  EXPECT_EQ(schedule.at(10), 0.0);
  EXPECT_EQ(schedule.at(1000), 0.0);
}

TEST(LrSchedule, DecayNeverStartsBeforeWarmUpEnds) {
  const LrSchedule schedule{
      .lr = 1.0, .warmup_steps = 4, .total_steps = 8, .decay = Decay::kLinear};
  EXPECT_EQ(schedule.at(3), 1.0);
  EXPECT_EQ(schedule.at(4), 1.0);
  EXPECT_EQ(schedule.at(6), 0.5);
}

TEST(LrSchedule, CosineEndsAtItsFloor) {
  const LrSchedule schedule{
      .lr = 2.0, .total_steps = 8, .decay = Decay::kCosine, .min_lr_factor = 0.1};
  EXPECT_EQ(schedule.at(0), 2.0);
  EXPECT_DOUBLE_EQ(schedule.at(2), 2.0 * (0.1 + 0.9 * 0.5 * (1.0 + std::sqrt(0.5))));
  EXPECT_DOUBLE_EQ(schedule.at(4), 2.0 * 0.55);
  EXPECT_DOUBLE_EQ(schedule.at(8), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(900), 0.2);
}

TEST(LrSchedule, InverseSqrtFollowsTheTransformerPaper) {
  const LrSchedule schedule{.lr = 1.0, .warmup_steps = 100, .decay = Decay::kInverseSqrt};
  EXPECT_EQ(schedule.at(99), 1.0);
  EXPECT_EQ(schedule.at(100), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(400), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(10000), 0.1);
  LrSchedule floored = schedule;
  floored.min_lr_factor = 0.3;
  EXPECT_EQ(floored.at(10000), 0.3);
}

TEST(LrSchedule, NeverRisesAfterWarmUpNorLeavesItsBounds) {
  for (const Decay decay : {Decay::kLinear, Decay::kCosine, Decay::kInverseSqrt}) {
    const LrSchedule schedule{.lr = 3e-4,
                              .warmup_steps = 5,
                              .total_steps = 60,
                              .decay = decay,
                              .decay_ratio = 0.7,
                              .min_lr_factor = 0.05};
    for (std::int64_t step = 4; step < 80; ++step) {
      EXPECT_LE(schedule.at(step + 1), schedule.at(step)) << step;
      EXPECT_GE(schedule.at(step), 3e-4 * 0.05) << step;
    }
  }
}

TEST(LrSchedule, ChecksAllSettingsAtOnce) {
  EXPECT_NO_THROW(LrSchedule{}.check());
  const LrSchedule bad{.lr = std::numeric_limits<double>::quiet_NaN(),
                       .warmup_steps = -1,
                       .total_steps = 0,
                       .decay = Decay::kLinear,
                       .decay_ratio = 1.5,
                       .min_lr_factor = -0.5};
  try {
    bad.check();
    FAIL() << "accepted";
  } catch (const base::ConfigError& error) {
    const std::string text = error.what();
    for (const char* part : {"learning rate", "nan", "warmup_steps", "-1", "total_steps",
                             "decay_ratio", "1.5", "min_lr_factor", "-0.5"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
    }
  }
}

TEST(DecayFromText, NamesTheNearest) {
  EXPECT_EQ(decay_from_text("none"), Decay::kNone);
  EXPECT_EQ(decay_from_text("Linear"), Decay::kLinear);
  EXPECT_EQ(decay_from_text("COSINE"), Decay::kCosine);
  EXPECT_EQ(decay_from_text("inverse_sqrt"), Decay::kInverseSqrt);
  try {
    decay_from_text("cosin");
    FAIL() << "accepted";
  } catch (const base::ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("did you mean 'cosine'"), std::string::npos) << text;
    EXPECT_NE(text.find("inverse_sqrt"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace headrace::optim
