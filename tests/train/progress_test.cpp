#include "headrace/train/progress.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"

namespace headrace::train {
namespace {

runtime::StepResult result(double loss, bool skipped = false) {
  runtime::StepResult result;
  result.loss = loss;
  result.grad_norm = 2;
  result.skipped = skipped;
  result.seconds = 0.5;
  result.workers = {{0.3, 0.1}, {0.1, 0.3}};
  return result;
}

class ProgressTest : public testing::Test {
 protected:
  ProgressLog make() {
    return {recipe_, folder_ / "metrics.jsonl",
            [this](std::string_view line) { printed_.emplace_back(line); }};
  }
  std::vector<record::StepRecord> records() const {
    return record::read_metrics(folder_ / "metrics.jsonl");
  }

  base::TemporaryFolder folder_;
  record::Recipe recipe_;
  std::vector<std::string> printed_;
  const std::vector<runtime::StageMemory> memory_{{10, 100}, {20, 200}};
};

TEST_F(ProgressTest, BooksEveryStepInTheMetricsFile) {
  ProgressLog progress = make();
  progress.step(1, 0.25, 64, result(3.5), memory_, 0.5);
  progress.step(2, 0.5, 60, result(std::numeric_limits<double>::quiet_NaN(), true), memory_, 1);
  ASSERT_EQ(records().size(), 2U);
  const record::StepRecord first = records()[0];
  EXPECT_EQ(first.step, 1);
  EXPECT_EQ(first.loss, 3.5);
  EXPECT_EQ(first.grad_norm, 2);
  EXPECT_EQ(first.lr, 0.25);
  EXPECT_EQ(first.tokens, 64);
  EXPECT_EQ(first.step_seconds, 0.5);
  EXPECT_DOUBLE_EQ(first.bubble_rate, 0.5);
  EXPECT_EQ(first.busy_seconds_by_worker, (std::vector<double>{0.3, 0.1}));
  EXPECT_EQ(first.wait_seconds_by_worker, (std::vector<double>{0.1, 0.3}));
  EXPECT_EQ(first.live_bytes_by_stage, (std::vector<std::int64_t>{10, 20}));
  EXPECT_EQ(first.peak_bytes_by_stage, (std::vector<std::int64_t>{100, 200}));
  EXPECT_FALSE(first.skipped);
  EXPECT_TRUE(records()[1].skipped);
  EXPECT_TRUE(std::isnan(records()[1].loss));
}

TEST_F(ProgressTest, PrintsTheFirstStepAndEachThatIsDue) {
  recipe_.metrics.log_freq = 4;
  ProgressLog progress = make();
  for (int step = 1; step <= 9; ++step) progress.step(step, 1, 8, result(1), memory_, step);
  ASSERT_EQ(printed_.size(), 3U);
  EXPECT_TRUE(printed_[0].starts_with("step: 1 "));
  EXPECT_TRUE(printed_[1].starts_with("step: 4 "));
  EXPECT_TRUE(printed_[2].starts_with("step: 8 "));
  EXPECT_NE(printed_[2].find("tps: 8 "), std::string::npos)
      << "32 tokens in the four seconds since the last line: " << printed_[2];
}

TEST_F(ProgressTest, PredictsTheEndByStepsOrByTime) {
  recipe_.metrics.log_freq = 1;
  recipe_.training.steps = 100;
  make().step(10, 1, 8, result(1), memory_, 10);
  EXPECT_NE(printed_.back().find("eta: 1m30s"), std::string::npos) << printed_.back();
  recipe_.training.stop_at = 40;
  make().step(10, 1, 8, result(1), memory_, 10);
  EXPECT_NE(printed_.back().find("eta: 30"), std::string::npos) << printed_.back();
  recipe_.training.max_seconds = 15;
  make().step(10, 1, 8, result(1), memory_, 10);
  EXPECT_NE(printed_.back().find("eta: 5"), std::string::npos) << printed_.back();
}

TEST_F(ProgressTest, AveragesTheFirstAndLastTwentyStepsThatWereNotSkipped) {
  ProgressLog progress = make();
  EXPECT_TRUE(std::isnan(progress.first_loss()));
  progress.step(1, 1, 8, result(1000, true), memory_, 1);
  EXPECT_TRUE(std::isnan(progress.last_loss()));
  for (int i = 1; i <= 50; ++i) progress.step(i + 1, 1, 8, result(i), memory_, i);
  EXPECT_DOUBLE_EQ(progress.first_loss(), 10.5);  // 1..20
  EXPECT_DOUBLE_EQ(progress.last_loss(), 40.5);   // 31..50
}

TEST_F(ProgressTest, AveragesTheWorkersTimeOverAllSteps) {
  ProgressLog progress = make();
  EXPECT_TRUE(progress.mean_busy_seconds().empty());
  for (int i = 1; i <= 3; ++i) progress.step(i, 1, 8, result(1), memory_, i);
  const std::vector<double> busy = progress.mean_busy_seconds();
  ASSERT_EQ(busy.size(), 2U);
  EXPECT_DOUBLE_EQ(busy[0], 0.3);
  EXPECT_DOUBLE_EQ(busy[1], 0.1);
  EXPECT_DOUBLE_EQ(progress.mean_step_seconds(), 0.5);
}

}  // namespace
}  // namespace headrace::train
