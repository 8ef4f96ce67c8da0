// Faults of other systems around microbatches: sizes, averages, accumulation. Each test takes the
// whole kind and writes the right value down, from plain LibTorch.
#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "headrace/optim/lr_schedule.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/bits.h"
#include "tests/support/layouts.h"
#include "tests/support/nets.h"
#include "tests/support/oracle.h"

namespace headrace::runtime {
namespace {

using Sizes = std::vector<std::int64_t>;
using test::differing;
using test::further_apart;

double total_norm(const test::Named& gradients) {
  double squares = 0;
  for (const auto& [name, gradient] : gradients) {
    if (gradient.defined()) squares += gradient.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

struct Reference {
  double loss = 0;
  test::Named gradients;
  at::Tensor output;
};

/// Microbatches one after the other in plain LibTorch.
Reference accumulated(test::Task& task, const Sizes& sizes) {
  Reference reference;
  reference.loss = test::oracle_backward(task.net, task.input, task.target, sizes);
  reference.gradients = test::gradients(test::parameters_of(task.net));
  const test::OneThread one_thread;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> outputs;
  std::int64_t first = 0;
  for (const std::int64_t rows : sizes) {
    outputs.push_back(task.net->forward(task.input.narrow(0, first, rows)));
    first += rows;
  }
  reference.output = at::cat(outputs);
  return reference;
}

/// The batch in one piece, with LibTorch's own mean.
Reference plain_mean(test::Task& task) {
  task.net->zero_grad();
  const at::Tensor loss = at::cross_entropy_loss(task.net->forward(task.input), task.target);
  loss.backward();
  return {loss.item<double>(), test::gradients(test::parameters_of(task.net)), {}};
}

// pytorch/pytorch#126600: buffers of the first microbatch's size break the smaller last one.
TEST(Microbatches, OfUnequalSizesGiveTheMeanOverAllRows) {
  struct Division {
    int rows;
    int microbatches;
    Sizes sizes;
  };
  for (const Division& division :
       {Division{8, 3, {3, 3, 2}}, Division{7, 4, {2, 2, 2, 1}}, Division{3, 5, {1, 1, 1}}}) {
    test::Task task = test::smooth(division.rows, /*dropout=*/0);
    const Reference mean = plain_mean(task);
    const Reference expected = accumulated(task, division.sizes);
    EXPECT_NEAR(expected.loss, mean.loss, 1e-6 * mean.loss);
    EXPECT_EQ(further_apart(expected.gradients, mean.gradients), "");
    for (const test::Layout& layout : test::layouts({1, 3})) {
      SCOPED_TRACE(testing::Message() << layout << ", " << division.rows << " rows");
      Pipeline pipeline(task.net, test::options(layout, division.microbatches));
      const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy(),
                                              StepOptions().keep_outputs());
      EXPECT_EQ(result.loss, expected.loss);
      EXPECT_EQ(result.num_microbatches, static_cast<int>(division.sizes.size()));
      EXPECT_EQ(result.weight, division.rows);
      EXPECT_EQ(differing(test::gradients(pipeline.named_parameters()), expected.gradients), "");
      EXPECT_TRUE(test::same_bits(result.outputs.at(0), expected.output));
    }
  }
}

TEST(Microbatches, OfOnePipelineMayChangeTheirSizeFromBatchToBatch) {
  test::Task task = test::smooth(11, /*dropout=*/0);
  const at::Tensor input = task.input;
  const at::Tensor target = task.target;
  const std::vector<std::pair<int, Sizes>> batches{
      {8, {3, 3, 2}}, {5, {2, 2, 1}}, {11, {4, 4, 3}}, {1, {1}}, {8, {3, 3, 2}}};
  for (const test::Layout& layout : test::layouts({2, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(task.net, test::options(layout, 3));
    for (const auto& [rows, sizes] : batches) {
      task.input = input.narrow(0, 0, rows);
      task.target = target.narrow(0, 0, rows);
      const Reference expected = accumulated(task, sizes);
      const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
      EXPECT_EQ(result.loss, expected.loss);
      EXPECT_EQ(differing(test::gradients(pipeline.named_parameters()), expected.gradients), "");
    }
  }
}

// huggingface/transformers#24725: a mean of means lets the tokens of short sequences weigh more.
TEST(Microbatches, TokensOfShortAndLongSequencesWeighTheSame) {
  test::Task task = test::tokens(2, 101);
  task.target.select(1, 0).fill_(-100);                    // the first token of each is not trained
  task.target.select(0, 0).narrow(0, 11, 90).fill_(-100);  // 11 tokens beside 101
  const double loss = test::oracle_backward(task.net, task.input, task.target, {2});
  const test::Named gradients = test::gradients(test::parameters_of(task.net));
  const at::Tensor mean =
      at::cross_entropy_loss(task.net->forward(task.input).flatten(0, 1), task.target.flatten());
  EXPECT_NEAR(loss, mean.item<double>(), 1e-6);
  for (const int microbatches : {1, 2}) {
    for (const test::Layout& layout : test::layouts({1, 2, 4})) {
      SCOPED_TRACE(testing::Message() << layout << " M=" << microbatches);
      Pipeline pipeline(task.net, test::options(layout, microbatches));
      const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
      EXPECT_EQ(result.weight, 110);
      EXPECT_NEAR(result.loss, loss, 1e-6 * loss);
      EXPECT_EQ(further_apart(test::gradients(pipeline.named_parameters()), gradients), "");
    }
  }
}

TEST(Microbatches, WithoutAnyTrainedTokenAddNothing) {
  test::Task task = test::tokens(3, 7);
  task.target.select(0, 1).fill_(-100);
  const double loss = test::oracle_backward(task.net, task.input, task.target, {1, 1, 1});
  const test::Named gradients = test::gradients(test::parameters_of(task.net));
  for (const test::Layout& layout : test::layouts({1, 2, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(task.net, test::options(layout, 3));
    const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
    EXPECT_TRUE(result.finite);
    EXPECT_EQ(result.weight, 14);
    EXPECT_EQ(result.microbatch_losses.at(1), 0) << "an average over no token would be NaN";
    EXPECT_EQ(result.loss, loss);
    EXPECT_EQ(differing(test::gradients(pipeline.named_parameters()), gradients), "");
  }
}

// pytorch/torchtitan#1733: scaling all gradients at each accumulating call turns their sum into a
// moving average.
TEST(Microbatches, OfThreeAccumulatingCallsAddUpLikeThoseOfOne) {
  test::Task task = test::smooth(24);  // dropout: the calls must also draw what the one call draws
  Pipeline whole(task.net, test::options({}, 12));
  const StepResult expected = whole.step(task.input, task.target, model::cross_entropy());
  const test::Named gradients = test::gradients(whole.named_parameters());
  for (const test::Layout& layout : test::layouts({1, 2, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(task.net, test::options(layout, 4));
    StepOptions options;
    options.total_weight(24);
    double loss = 0;
    double norm = 0;
    for (int call = 0; call < 3; ++call) {
      const StepResult result =
          pipeline.step(task.input.narrow(0, 8 * call, 8), task.target.narrow(0, 8 * call, 8),
                        model::cross_entropy(), options);
      for (const double share : result.microbatch_losses) loss += share;
      norm = result.grad_norm;
      options.accumulate();
    }
    EXPECT_EQ(loss, expected.loss);
    EXPECT_EQ(norm, expected.grad_norm);
    EXPECT_EQ(differing(test::gradients(pipeline.named_parameters()), gradients), "");
    EXPECT_EQ(pipeline.state().step, 1U);
  }
}

// NVIDIA-NeMo/Automodel PR 3530: a new sequence length re-makes the stages and wipes what the
// calls before had gathered; the loss looks fine.
TEST(Microbatches, OfAnotherLengthDoNotWipeTheGradientsGatheredSoFar) {
  const test::Task shorter = test::tokens(4, 32);
  const test::Task longer = test::tokens(4, 48, /*seed=*/2);
  const double weight = 4 * (32 + 48);
  test::Task task = test::tokens(4, 1);
  const auto share = [&](std::int64_t first, std::int64_t rows) -> at::Tensor {
    const test::Task& batch = first < 4 ? shorter : longer;
    const at::Tensor output = task.net->forward(batch.input.narrow(0, first % 4, rows));
    return at::cross_entropy_loss(output.flatten(0, 1),
                                  batch.target.narrow(0, first % 4, rows).flatten(), {},
                                  at::Reduction::Sum) /
           weight;
  };
  test::oracle_backward(task.net->parameters(), {2, 2, 2, 2}, share);
  const test::Named gradients = test::gradients(test::parameters_of(task.net));
  for (const test::Layout& layout : test::layouts({1, 2, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(task.net, test::options(layout, 2));
    StepOptions options;
    options.total_weight(weight);
    pipeline.step(shorter.input, shorter.target, model::cross_entropy(), options);
    const StepResult result =
        pipeline.step(longer.input, longer.target, model::cross_entropy(), options.accumulate());
    EXPECT_NEAR(result.grad_norm, total_norm(gradients), 1e-12 * result.grad_norm);
    EXPECT_EQ(differing(test::gradients(pipeline.named_parameters()), gradients), "");
  }
}

// huggingface/accelerate#963: the learning rate moves once per microbatch instead of per update.
TEST(Microbatches, DoNotMoveTheLearningRate) {
  const optim::LrSchedule schedule{.lr = 0.5, .warmup_steps = 4};
  test::Task task = test::smooth(16, /*dropout=*/0);
  const test::Named initial = test::snapshot(test::parameters_of(task.net));
  const auto reset = [&](const test::Named& values) {
    const at::NoGradGuard no_grad;
    const test::Named parameters = test::parameters_of(task.net);
    for (std::size_t i = 0; i < values.size(); ++i) parameters[i].second.copy_(values[i].second);
  };
  torch::optim::SGD plain(task.net->parameters(), torch::optim::SGDOptions(0));
  for (const double lr : {0.125, 0.25}) {  // of the updates 0 and 1
    const std::int64_t first = lr == 0.125 ? 0 : 8;
    test::oracle_backward(task.net, task.input.narrow(0, first, 8), task.target.narrow(0, first, 8),
                          {2, 2, 2, 2});
    optim::set_lr(plain, lr);
    plain.step();
  }
  const test::Named expected = test::snapshot(test::parameters_of(task.net));
  for (const test::Layout& layout : test::layouts({1, 2, 3})) {
    SCOPED_TRACE(testing::Message() << layout);
    reset(initial);
    Pipeline pipeline(task.net, test::options(layout, 4).optimizer(
                                    optim::optimizer_factory({.name = "SGD", .weight_decay = 0})));
    for (int update = 0; update < 2; ++update) {
      const auto step = static_cast<std::int64_t>(pipeline.state().step);
      pipeline.step(task.input.narrow(0, 8 * update, 8), task.target.narrow(0, 8 * update, 8),
                    model::cross_entropy(), StepOptions().lr(schedule.at(step)));
    }
    EXPECT_EQ(pipeline.state().step, 2U) << "eight microbatches in two updates";
    EXPECT_EQ(schedule.at(2), 0.375);
    EXPECT_EQ(differing(pipeline.named_parameters(), expected), "");
  }
}

TEST(Microbatches, OfAccumulatingCallsCountAsOneUpdate) {
  test::Task task = test::smooth(16);
  Pipeline pipeline(task.net, test::options({}, 1));
  for (int call = 0; call < 8; ++call) {
    pipeline.step(task.input.narrow(0, 2 * call, 2), task.target.narrow(0, 2 * call, 2),
                  model::cross_entropy(), StepOptions().accumulate(call % 4 != 0).total_weight(8));
  }
  EXPECT_EQ(pipeline.state().step, 2U);
}

}  // namespace
}  // namespace headrace::runtime
