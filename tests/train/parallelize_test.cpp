#include "headrace/train/parallelize.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "headrace/base/error.h"

namespace headrace::train {
namespace {

record::Recipe recipe() {
  record::Recipe recipe;
  recipe.training.global_batch_size = 10;
  recipe.training.micro_batch_size = 3;
  recipe.training.max_norm = 0.5;
  recipe.training.intra_op_threads = 2;
  recipe.parallelism.pipeline_parallel_size = 3;
  recipe.parallelism.pipeline_schedule = "GPipe";
  recipe.activation_checkpoint.mode = "except_last";
  recipe.debug.seed = 11;
  recipe.comm.timeout_seconds = 2.5;
  return recipe;
}

TEST(PipelineOptionsOf, SaysWhatTheRecipeSays) {
  const at::Tensor sample = at::ones({4});
  const runtime::PipelineOptions options = pipeline_options(recipe(), {sample}, {});
  EXPECT_EQ(options.num_workers_, 3);
  EXPECT_EQ(options.microbatches_, 4) << "10 rows in microbatches of at most 3";
  EXPECT_EQ(options.schedule_, "GPipe");
  EXPECT_EQ(options.remat_, runtime::Remat::kExceptLast);
  EXPECT_EQ(options.balance_, runtime::Balance::kMeasured);
  EXPECT_TRUE(options.layers_per_stage_.empty());
  EXPECT_TRUE(options.sample_.at(0).is_same(sample));
  EXPECT_EQ(options.max_norm_, 0.5);
  EXPECT_EQ(options.intra_op_threads_, 2);
  EXPECT_EQ(options.seed_, 11U);
  EXPECT_EQ(options.timeout_, std::chrono::milliseconds(2500));
}

TEST(PipelineOptionsOf, TakesEachModeAndBalance) {
  record::Recipe changed = recipe();
  for (const auto& [mode, remat] : {std::pair("never", runtime::Remat::kNever),
                                    std::pair("except_last", runtime::Remat::kExceptLast),
                                    std::pair("always", runtime::Remat::kAlways)}) {
    changed.activation_checkpoint.mode = mode;
    EXPECT_EQ(pipeline_options(changed, {}, {}).remat_, remat) << mode;
  }
  changed.parallelism.balance = "parameters";
  EXPECT_EQ(pipeline_options(changed, {}, {}).balance_, runtime::Balance::kParameters);
  changed.parallelism.layers_per_stage = {1, 2, 3};
  EXPECT_EQ(pipeline_options(changed, {}, {}).layers_per_stage_, (std::vector<int>{1, 2, 3}));
  changed.activation_checkpoint.mode = "sometimes";
  EXPECT_THROW(pipeline_options(changed, {}, {}), base::ConfigError);
}

TEST(PipelineOptionsOf, MakesTheOptimizerWithAllItsSettings) {
  record::Recipe changed = recipe();
  changed.optimizer = {.name = "AdamW",
                       .lr = 0.25,
                       .weight_decay = 0.125,
                       .momentum = 0,
                       .beta1 = 0.5,
                       .beta2 = 0.75,
                       .eps = 1e-3};
  const auto adamw = pipeline_options(changed, {}, {}).optimizer_({at::ones({2})});
  const auto& adamw_options =
      static_cast<torch::optim::AdamWOptions&>(adamw->param_groups().at(0).options());
  EXPECT_EQ(adamw_options.lr(), 0.25);
  EXPECT_EQ(adamw_options.weight_decay(), 0.125);
  EXPECT_EQ(adamw_options.betas(), (std::tuple<double, double>(0.5, 0.75)));
  EXPECT_EQ(adamw_options.eps(), 1e-3);
  changed.optimizer.name = "SGD";
  changed.optimizer.momentum = 0.875;
  const auto sgd = pipeline_options(changed, {}, {}).optimizer_({at::ones({2})});
  const auto& sgd_options =
      static_cast<torch::optim::SGDOptions&>(sgd->param_groups().at(0).options());
  EXPECT_EQ(sgd_options.lr(), 0.25);
  EXPECT_EQ(sgd_options.momentum(), 0.875);
  EXPECT_EQ(sgd_options.weight_decay(), 0.125);
}

TEST(LrScheduleOf, DecaysTowardsTotalStepsOrTheEndOfTheTraining) {
  record::Recipe changed = recipe();
  changed.optimizer.lr = 0.5;
  changed.training.steps = 100;
  changed.lr_scheduler = {.warmup_steps = 10,
                          .decay_type = "linear",
                          .decay_ratio = 0.5,
                          .min_lr_factor = 0.25,
                          .total_steps = 0};
  const optim::LrSchedule schedule = lr_schedule(changed);
  EXPECT_EQ(schedule.at(0), 0.05);
  EXPECT_EQ(schedule.at(50), 0.5);
  EXPECT_EQ(schedule.at(100), 0.125);
  changed.lr_scheduler.total_steps = 40;
  EXPECT_EQ(lr_schedule(changed).at(40), 0.125);
}

}  // namespace
}  // namespace headrace::train
