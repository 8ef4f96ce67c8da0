#include "headrace/train/trainer.h"

#include <cmath>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/record/checkpoint_diff.h"
#include "headrace/record/metrics.h"

#include "tests/base/temporary_folder.h"
#include "tests/train/small_corpus.h"
#include "tests/train/small_recipe.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() : recipe_(test::small_recipe(folder_.path())) {
    at::set_num_threads(1);  // a second one costs more than it gives on layers this small
    test::write_small_corpus(folder_ / "data");
  }

  Outcome run() {
    TrainerOptions options;
    options.print = [this](std::string_view line) { printed_ += std::string(line) + "\n"; };
    options.stop_signal = &signal_;
    return train(recipe_, options);
  }
  std::vector<record::StepRecord> metrics() const {
    return record::read_metrics(fs::path(recipe_.run.folder) / "metrics.jsonl");
  }
  bool saved() const { return fs::exists(fs::path(recipe_.run.folder) / "checkpoints"); }

  base::TemporaryFolder folder_;
  record::Recipe recipe_;
  std::string printed_;
  std::atomic<int> signal_{0};
};

TEST_F(TrainerTest, MakesAllStepsSavesAndEvaluates) {
  const Outcome outcome = run();
  EXPECT_EQ(outcome.end, End::kSteps);
  EXPECT_EQ(outcome.steps, 3);
  EXPECT_EQ(outcome.run_folder, recipe_.run.folder);
  EXPECT_EQ(metrics().size(), 3U);
  EXPECT_EQ(record::find_checkpoint(recipe_.run.folder).filename(), "step-00000003");
  EXPECT_NE(printed_.find("held-out pairs"), std::string::npos) << printed_;
}

TEST_F(TrainerTest, MovesTheLearningRateOncePerUpdate) {
  recipe_.optimizer.lr = 0.5;
  recipe_.lr_scheduler.warmup_steps = 4;
  recipe_.training.micro_batch_size = 1;  // ten microbatches a step
  run();
  const auto records = metrics();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].lr, 0.125);
  EXPECT_EQ(records[1].lr, 0.25);
  EXPECT_EQ(records[2].lr, 0.375);
}

TEST_F(TrainerTest, StopsWhereItIsAskedTo) {
  recipe_.training.steps = 1000;
  recipe_.training.stop_at = 2;
  EXPECT_EQ(run().steps, 2);
  recipe_.run.folder += "-time";
  recipe_.training.stop_at = 0;
  recipe_.training.max_seconds = 1e-9;
  const Outcome timed = run();
  EXPECT_EQ(timed.end, End::kTime);
  EXPECT_EQ(timed.steps, 1);
}

TEST_F(TrainerTest, ASignalEndsItAfterTheStepWithoutAnEvaluation) {
  signal_ = 15;
  const Outcome outcome = run();
  EXPECT_EQ(outcome.end, End::kSignal);
  EXPECT_EQ(outcome.signal, 15);
  EXPECT_EQ(outcome.steps, 1);
  EXPECT_TRUE(saved());
  EXPECT_EQ(printed_.find("held-out pairs"), std::string::npos);
}

TEST_F(TrainerTest, GivesUpOnNumbersThatAreNotFinite) {
  recipe_.training.steps = 100;
  recipe_.optimizer.lr = 1e30;
  const Outcome skipped = run();
  EXPECT_EQ(skipped.end, End::kNonFinite);
  EXPECT_EQ(skipped.steps, 11);
  EXPECT_NE(skipped.message.find("10 in a row"), std::string::npos) << skipped.message;
  EXPECT_EQ(metrics().back().lr, metrics()[1].lr) << "the schedule stands still";
  recipe_.run.folder += "-stop";
  recipe_.training.on_nonfinite = "stop";
  const Outcome stopped = run();
  EXPECT_EQ(stopped.end, End::kNonFinite);
  EXPECT_EQ(stopped.steps, 2);
  EXPECT_TRUE(std::isfinite(stopped.first_loss));
}

TEST_F(TrainerTest, SavesNothingWhenToldSo) {
  recipe_.checkpoint.enable = false;
  run();
  EXPECT_FALSE(saved());
}

TEST_F(TrainerTest, RefusesACorpusThatIsNotThereBeforeTheRunFolderIsMade) {
  recipe_.data.root += "-nowhere";
  EXPECT_THROW(run(), base::ConfigError);
  EXPECT_FALSE(fs::exists(recipe_.run.folder));
}

}  // namespace
}  // namespace headrace::train
