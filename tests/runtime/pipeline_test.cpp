#include "headrace/runtime/pipeline.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include "headrace/base/error.h"
#include "headrace/model/layer.h"
#include "headrace/optim/norm.h"

#include "tests/support/bits.h"
#include "tests/support/messages.h"
#include "tests/support/nets.h"
#include "tests/support/oracle.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;
using test::expect_says;
using test::message_of;

TEST(Pipeline, RefusesMoreWorkersThanLayers) {
  expect_says(message_of([] { Pipeline(test::mlp(4).net, PipelineOptions(11)); }),
              {"10 layers", "11 workers"});
}

TEST(Pipeline, RefusesWrongOptionsAtConstruction) {
  const nn::Sequential net = test::mlp(4).net;
  const auto refuse = [&](const PipelineOptions& options) {
    return message_of([&] { Pipeline(net, options); });
  };
  expect_says(refuse(PipelineOptions(0)), {"at least 1 worker", "0"});
  expect_says(refuse(PipelineOptions(1).microbatches(0)), {"at least 1 microbatch"});
  expect_says(refuse(PipelineOptions(2).schedule("GPiep")), {"GPiep", "GPipe"});
  expect_says(refuse(PipelineOptions(2).max_norm(1)), {"optimizer"});
  expect_says(refuse(PipelineOptions(2).max_norm(NAN)), {"max_norm"});
  expect_says(refuse(PipelineOptions(2).layers_per_stage({3, 3})), {"6", "10"});
  expect_says(refuse(PipelineOptions(2).layers_per_stage({10})), {"1 entries", "2 stages"});
  expect_says(refuse(PipelineOptions(2).devices({at::kCPU})), {"1 devices", "2 stages"});
  expect_says(refuse(PipelineOptions(2).intra_op_threads(0)), {"intra_op_threads"});
  expect_says(refuse(PipelineOptions(2).timeout(std::chrono::milliseconds(0))), {"timeout"});
}

TEST(Pipeline, RefusesWrongBatches) {
  Pipeline pipeline(test::mlp(4).net, PipelineOptions(2));
  const model::Loss loss = model::cross_entropy();
  const at::Tensor input = at::randn({4, 12});
  const at::Tensor target = at::zeros({4}, at::kLong);
  expect_says(message_of([&] { pipeline.step(input, target.slice(0, 0, 3), loss); }), {"4", "3"});
  expect_says(message_of([&] { pipeline.step(Tensors{}, target, loss); }), {"input"});
  expect_says(message_of([&] { pipeline.step(input.slice(0, 0, 0), target.slice(0, 0, 0), loss); }),
              {"rows"});
  expect_says(message_of([&] { pipeline.step(input, target, loss, StepOptions().accumulate()); }),
              {"first step"});
  expect_says(message_of([&] { pipeline.step(input, target, loss, StepOptions().lr(0.1)); }),
              {"optimizer"});
  expect_says(
      message_of([&] { pipeline.step(input, target, loss, StepOptions().total_weight(NAN)); }),
      {"total_weight"});
  EXPECT_TRUE(pipeline.step(input, target, loss).finite) << "a refused call must not do harm";
}

TEST(Pipeline, StepReplacesGradientsAndAccumulateAddsToThem) {
  test::Task task = test::mlp(8);
  for (const auto& module : task.net->modules()) {
    if (auto* dropout = module->as<nn::Dropout>()) dropout->options.p(0);
  }
  Pipeline pipeline(task.net, PipelineOptions(2).microbatches(2));
  const model::Loss loss = model::cross_entropy();
  pipeline.step(task.input, task.target, loss);
  const test::Named once = test::gradients(pipeline.named_parameters());
  pipeline.step(task.input, task.target, loss);
  EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), once), "");
  pipeline.step(task.input, task.target, loss, StepOptions().accumulate());
  test::Named doubled;
  for (const auto& [name, gradient] : once) doubled.emplace_back(name, gradient * 2);
  EXPECT_EQ(test::further_apart(test::gradients(pipeline.named_parameters()), doubled), "");
}

TEST(Pipeline, EachStepDrawsItsOwnDropoutMasks) {
  test::Task task = test::mlp(8);
  Pipeline pipeline(task.net, PipelineOptions(2).microbatches(2));
  const double first = pipeline.step(task.input, task.target, model::cross_entropy()).loss;
  const double second = pipeline.step(task.input, task.target, model::cross_entropy()).loss;
  EXPECT_NE(first, second);
  pipeline.load_state({.seed = 0, .step = 0});
  EXPECT_EQ(pipeline.step(task.input, task.target, model::cross_entropy()).loss, first);
  EXPECT_EQ(pipeline.state().step, 1u);
}

TEST(Pipeline, ForwardEqualsTheNetInEvalModeAndMovesNothing) {
  for (const char* name : {"mlp", "text", "images"}) {
    test::Task task = test::task(name, 10);
    task.net->ptr(0)->eval();  // one layer's own flag, to be restored
    Pipeline pipeline(task.net, PipelineOptions(3).microbatches(1));
    const auto generator = at::globalContext().defaultGenerator(at::kCPU);
    const test::Named buffers = test::snapshot(pipeline.named_buffers());
    const at::Tensor state = generator.get_state();
    const at::Tensor output = pipeline.forward(task.input);
    EXPECT_TRUE(test::same_bits(generator.get_state(), state));
    EXPECT_EQ(test::differing(pipeline.named_buffers(), buffers), "");
    EXPECT_EQ(pipeline.state().step, 0u);
    EXPECT_FALSE(output.requires_grad());
    for (const auto& [parameter, tensor] : pipeline.named_parameters()) {
      EXPECT_FALSE(tensor.grad().defined()) << parameter;
    }
    EXPECT_FALSE(task.net->ptr(0)->is_training());
    EXPECT_TRUE(task.net->ptr(3)->is_training());
    const at::NoGradGuard no_grad;
    task.net->eval();
    at::set_num_threads(1);
    EXPECT_TRUE(test::same_bits(output, test::oracle_forward(task.net, task.input))) << name;
  }
}

TEST(Pipeline, TheGlobalGeneratorDoesNotMove) {
  test::Task task = test::text(8);
  const auto generator = at::globalContext().defaultGenerator(at::kCPU);
  Pipeline pipeline(task.net, PipelineOptions(2).microbatches(4).remat(Remat::kAlways));
  const at::Tensor state = generator.get_state();
  pipeline.step(task.input, task.target, model::cross_entropy());
  EXPECT_TRUE(test::same_bits(generator.get_state(), state));
}

TEST(Pipeline, TheCallersThreadSettingsStay) {
  test::Task task = test::mlp(8);
  at::set_num_threads(2);
  Pipeline pipeline(task.net, PipelineOptions(2).microbatches(2));
  pipeline.step(task.input, task.target, model::cross_entropy());
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST(Pipeline, ClipsByTheGlobalNormOncePerUpdate) {
  const auto train = [](double max_norm) {
    test::Task task = test::mlp(8);
    optim::OptimizerSettings settings;
    settings.name = "SGD";
    settings.lr = 1;
    settings.weight_decay = 0;
    Pipeline pipeline(task.net, PipelineOptions(3)
                                    .microbatches(4)
                                    .optimizer(optim::optimizer_factory(settings))
                                    .max_norm(max_norm));
    const test::Named before = test::snapshot(pipeline.named_parameters());
    const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
    double moved = 0;
    const test::Named after = pipeline.named_parameters();
    for (std::size_t i = 0; i < after.size(); ++i) {
      moved += optim::squared_norm((after[i].second - before[i].second).detach());
    }
    return std::pair(result.grad_norm, std::sqrt(moved));
  };
  const auto [norm, moved] = train(0);
  EXPECT_NEAR(moved, norm, 1e-5 * norm);
  const auto [same_norm, clipped] = train(norm / 4);
  EXPECT_EQ(same_norm, norm) << "the norm is told before clipping";
  EXPECT_NEAR(clipped, norm / 4, 1e-4 * norm);
}

TEST(Pipeline, TheLearningRateOfAStepReachesEveryStage) {
  test::Task task = test::mlp(8);
  Pipeline pipeline(task.net, PipelineOptions(3).microbatches(2).optimizer(
                                  optim::optimizer_factory({.name = "SGD", .lr = 5})));
  const test::Named before = test::snapshot(pipeline.named_parameters());
  pipeline.step(task.input, task.target, model::cross_entropy(), StepOptions().lr(0));
  EXPECT_EQ(test::differing(pipeline.named_parameters(), before), "");
}

TEST(Pipeline, ANonFiniteLossUpdatesNothing) {
  test::Task task = test::images(8);
  Pipeline pipeline(task.net, PipelineOptions(3).microbatches(2).optimizer(
                                  optim::optimizer_factory({.name = "AdamW"})));
  const model::Loss loss = model::cross_entropy();
  pipeline.step(task.input, task.target, loss);
  const test::Named before = test::snapshot(pipeline.named_parameters());
  const test::Named buffers = test::snapshot(pipeline.named_buffers());
  at::Tensor poisoned = task.input.clone();
  poisoned[5].fill_(NAN);
  const StepResult result = pipeline.step(poisoned, task.target, loss);
  EXPECT_FALSE(result.finite);
  EXPECT_TRUE(result.skipped);
  EXPECT_EQ(test::differing(pipeline.named_parameters(), before), "");
  EXPECT_EQ(test::differing(pipeline.named_buffers(), buffers), "");
  EXPECT_TRUE(pipeline.step(task.input, task.target, loss).finite);
}

TEST(Pipeline, NothingToLearnSkipsTheStep) {
  test::Task task = test::text(6);
  task.target.fill_(-100);
  Pipeline pipeline(task.net, PipelineOptions(2).microbatches(3));
  const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
  EXPECT_TRUE(result.skipped);
  EXPECT_EQ(result.weight, 0);
  EXPECT_EQ(pipeline.state().step, 1u);
}

TEST(Pipeline, OutputsAreJoinedInTheOrderOfTheRows) {
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(3, 3), nn::Identity());
  Pipeline pipeline(net, PipelineOptions(2).microbatches(3));
  const at::Tensor input = at::randn({8, 3});
  const StepResult result = pipeline.step(input, at::zeros({8}, at::kLong), model::cross_entropy(),
                                          StepOptions().keep_outputs());
  ASSERT_EQ(result.outputs.size(), 1u);
  EXPECT_EQ(result.outputs[0].size(0), 8);
  EXPECT_TRUE(at::allclose(result.outputs[0], net->forward(input)));
  EXPECT_EQ(result.num_microbatches, 3);
}

TEST(Pipeline, LayersAreBuiltFromSpecs) {
  int built = 0;
  std::vector<model::LayerSpec> specs;
  for (int i = 0; i < 3; ++i) {
    specs.push_back({"block" + std::to_string(i), [&built] {
                       ++built;
                       return nn::AnyModule(nn::Linear(4, 4));
                     }});
  }
  Pipeline pipeline(specs, PipelineOptions(3));
  EXPECT_EQ(built, 3);
  EXPECT_EQ(pipeline.named_parameters()[2].first, "block1.weight");
}

TEST(Pipeline, TheMeasuredCutIsMadeFromTheSampleOrTheFirstBatch) {
  test::Task task = test::mlp(8);
  Pipeline now(task.net, PipelineOptions(2).microbatches(2).sample({task.input}));
  ASSERT_TRUE(now.cut() && now.profile());
  EXPECT_EQ(now.profile()->layers.size(), 10u);
  EXPECT_EQ(now.profile()->microbatch_rows, 4);
  Pipeline later(task.net, PipelineOptions(2).microbatches(2));
  EXPECT_FALSE(later.cut());
  later.forward(task.input);
  EXPECT_TRUE(later.cut() && later.profile());
}

TEST(Pipeline, AnInPlaceLayerAtTheStartOfARecomputedStageIsRefusedByName) {
  test::Task task = test::mlp(8);
  const PipelineOptions options = PipelineOptions(2).microbatches(2).layers_per_stage({1, 9});
  Pipeline without(task.net, options);
  EXPECT_TRUE(without.step(task.input, task.target, model::cross_entropy()).finite);
  Pipeline with(task.net, PipelineOptions(options).remat(Remat::kAlways));
  expect_says(message_of([&] { with.step(task.input, task.target, model::cross_entropy()); }),
              {"layer '1'", "in place", "stage 1"});
}

TEST(Pipeline, WorksAfterAMove) {
  test::Task task = test::mlp(8);
  Pipeline first(task.net, PipelineOptions(2).microbatches(2));
  Pipeline second = std::move(first);
  EXPECT_TRUE(second.step(task.input, task.target, model::cross_entropy()).finite);
}

}  // namespace
}  // namespace headrace::runtime
