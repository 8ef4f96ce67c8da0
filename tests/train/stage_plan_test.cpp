#include "headrace/train/stage_plan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace headrace::train {
namespace {

torch::nn::Sequential net() {
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 2));
}

TEST(PlanOf, NamesEachStagesLayersAndParameters) {
  const auto options = runtime::PipelineOptions(2)
                           .microbatches(4)
                           .schedule("GPipe")
                           .remat(runtime::Remat::kAlways)
                           .layers_per_stage({1, 2});
  const RunPlan plan = plan_of(runtime::Pipeline(net(), options), options);
  EXPECT_EQ(plan.schedule, "GPipe");
  EXPECT_EQ(plan.num_microbatches, 4);
  EXPECT_EQ(plan.remat, "always");
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(plan.stages[0].layers, (std::vector<std::string>{"0"}));
  EXPECT_EQ(plan.stages[0].parameters, 40);
  EXPECT_EQ(plan.stages[0].predicted_seconds, 0) << "nothing was measured";
  EXPECT_EQ(plan.stages[1].layers, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(plan.stages[1].parameters, 18);
}

TEST(PlanOf, PredictsEveryForwardBackwardAndRecomputation) {
  for (const auto& [remat, again] :
       {std::pair(runtime::Remat::kNever, 0), std::pair(runtime::Remat::kExceptLast, 3),
        std::pair(runtime::Remat::kAlways, 4)}) {
    const auto options =
        runtime::PipelineOptions(2).microbatches(4).remat(remat).sample({at::ones({8, 4})});
    const runtime::Pipeline pipeline(net(), options);
    const RunPlan plan = plan_of(pipeline, options);
    double expected = 0;
    for (const plan::LayerProfile& layer : pipeline.profile()->layers) {
      expected += 4 * layer.seconds() + again * layer.forward_seconds;
    }
    double predicted = 0;
    for (const StagePlan& stage : plan.stages) predicted += stage.predicted_seconds;
    EXPECT_GT(predicted, 0);
    EXPECT_NEAR(predicted, expected, 1e-9 * expected);
  }
}

const RunPlan kPlan{
    "1F1B", 3, "except_last", {{{"embed", "encoder_0"}, 1234567, 0.0125}, {{"head"}, 8, 0}}};

TEST(PlanToJson, HasThePublishedKeys) {
  const auto document = nlohmann::json::parse(to_json(kPlan));
  EXPECT_EQ(document, nlohmann::json::parse(R"({
    "format_version": 1,
    "schedule": "1F1B",
    "num_microbatches": 3,
    "activation_checkpoint_mode": "except_last",
    "stages": [
      {"layers": ["embed", "encoder_0"], "parameters": 1234567,
       "predicted_seconds_per_step": 0.0125},
      {"layers": ["head"], "parameters": 8, "predicted_seconds_per_step": 0}
    ]})"));
}

TEST(PlanToText, LaysPredictedAndMeasuredSideBySide) {
  const std::string before = to_text(kPlan, {}, {});
  EXPECT_NE(before.find("embed .. encoder_0"), std::string::npos) << before;
  EXPECT_NE(before.find("1,234,567"), std::string::npos) << before;
  EXPECT_NE(before.find("12.5 ms"), std::string::npos) << before;
  EXPECT_EQ(before.find("measured"), std::string::npos) << before;
  const std::string after = to_text(kPlan, {0.02, 0.001}, {{0, 3 << 20}, {0, 1024}});
  EXPECT_NE(after.find("measured/step"), std::string::npos) << after;
  EXPECT_NE(after.find("20.0 ms"), std::string::npos) << after;
  EXPECT_NE(after.find("peak memory"), std::string::npos) << after;
}

}  // namespace
}  // namespace headrace::train
