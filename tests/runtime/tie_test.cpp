// Weights that stand at several places: each use adds up on its own, the uses in layer order.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "headrace/base/error.h"
#include "headrace/model/layer.h"
#include "headrace/runtime/microbatch.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/acts.h"
#include "tests/support/bits.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

/// Embedding and softmax weight are one tensor; one Linear stands at two places.
nn::Sequential tied_net() {
  torch::manual_seed(3);
  nn::Embedding embedding(11, 8);
  nn::Linear twice(8, 8);
  return nn::Sequential(embedding, twice, nn::Tanh(), nn::Linear(8, 8), twice,
                        test::TiedHead(embedding->weight));
}

struct Batch {
  at::Tensor input = at::randint(11, {10, 5}, at::kLong);
  at::Tensor target = at::randint(11, {10, 5}, at::kLong);
};

struct Outcome {
  StepResult result;
  test::Named gradients;
};

Outcome run(int workers, const std::string& schedule, Remat remat, int microbatches = 4) {
  const nn::Sequential net = tied_net();
  torch::manual_seed(9);
  const Batch batch;
  Pipeline pipeline(net, PipelineOptions(workers)
                             .microbatches(microbatches)
                             .schedule(schedule)
                             .remat(remat)
                             .balance(Balance::kParameters));
  Outcome outcome;
  outcome.result = pipeline.step(batch.input, batch.target, model::cross_entropy());
  outcome.gradients = test::gradients(pipeline.named_parameters());
  return outcome;
}

TEST(Tie, ListsASharedTensorOnceUnderItsFirstName) {
  Pipeline pipeline(tied_net(), PipelineOptions(2).balance(Balance::kParameters));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : pipeline.named_parameters()) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"0.weight", "1.weight", "1.bias", "3.weight", "3.bias"}));
}

TEST(Tie, EqualsOneStageToTheBit) {
  const Outcome expected = run(1, "GPipe", Remat::kNever);
  for (const int workers : {1, 2, 3, 4, 6}) {
    for (const char* schedule : {"Sequential", "GPipe", "1F1B"}) {
      for (const Remat remat : {Remat::kNever, Remat::kExceptLast, Remat::kAlways}) {
        const Outcome actual = run(workers, schedule, remat);
        EXPECT_EQ(actual.result.loss, expected.result.loss) << workers << schedule;
        EXPECT_EQ(actual.result.grad_norm, expected.result.grad_norm) << workers << schedule;
        EXPECT_EQ(test::differing(actual.gradients, expected.gradients), "") << workers << schedule;
      }
    }
  }
}

TEST(Tie, EqualsAutogradUpToTheOrderOfAdditions) {
  nn::Sequential net = tied_net();
  torch::manual_seed(9);
  const Batch batch;
  test::Named parameters;
  for (const auto& item : net->named_parameters()) {
    const bool again = std::any_of(parameters.begin(), parameters.end(), [&](const auto& known) {
      return known.second.is_same(item.value());
    });
    if (!again) parameters.emplace_back(item.key(), item.value());
  }
  const at::Tensor logits = net->forward(batch.input);
  (at::cross_entropy_loss(logits.flatten(0, 1), batch.target.flatten(), {}, at::Reduction::Sum) /
   50)
      .backward();
  const Outcome actual = run(3, "1F1B", Remat::kAlways);
  EXPECT_EQ(test::further_apart(actual.gradients, test::gradients(parameters)), "");
}

TEST(Tie, SumsLiveAcrossAccumulatingCalls) {
  const Outcome expected = run(2, "1F1B", Remat::kNever, 4);
  const nn::Sequential net = tied_net();
  torch::manual_seed(9);
  const Batch batch;
  Pipeline pipeline(net, PipelineOptions(2).microbatches(2).balance(Balance::kParameters));
  // Ten rows in four microbatches are 3,3,2,2.
  const auto parts = split_rows({batch.input, batch.target}, {6, 4});
  StepOptions options;
  options.total_weight(50);
  double loss = 0;
  for (const auto& part : parts) {
    const StepResult result = pipeline.step(part[0], part[1], model::cross_entropy(), options);
    for (const double share : result.microbatch_losses) loss += share;
    options.accumulate();
  }
  EXPECT_EQ(loss, expected.result.loss);
  EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), expected.gradients), "");
}

TEST(Tie, AModuleWithBuffersCannotBeSharedByWorkers) {
  nn::BatchNorm1d norm(8);
  const nn::Sequential net(nn::Linear(8, 8), norm, nn::Linear(8, 8), norm);
  const PipelineOptions apart = PipelineOptions(2).layers_per_stage({2, 2});
  try {
    Pipeline pipeline(net, apart);
    FAIL() << "two workers would write one buffer";
  } catch (const base::ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("'1.running_mean'"), std::string::npos) << e.what();
  }
  Pipeline together(net, PipelineOptions(2).layers_per_stage({1, 3}));
  EXPECT_TRUE(
      together.step(at::randn({8, 8}), at::zeros({8}, at::kLong), model::cross_entropy()).finite);
}

TEST(Tie, TrainedByTheOptimizerOnce) {
  const auto train = [](int workers) {
    optim::OptimizerSettings settings;
    settings.name = "SGD";
    settings.lr = 0.1;
    settings.weight_decay = 0;
    Pipeline pipeline(tied_net(), PipelineOptions(workers)
                                      .microbatches(2)
                                      .balance(Balance::kParameters)
                                      .optimizer(optim::optimizer_factory(settings)));
    torch::manual_seed(9);
    const Batch batch;
    const test::Named before = test::snapshot(pipeline.named_parameters());
    pipeline.step(batch.input, batch.target, model::cross_entropy());
    const test::Named gradients = test::gradients(pipeline.named_parameters());
    const test::Named after = test::snapshot(pipeline.named_parameters());
    for (std::size_t i = 0; i < after.size(); ++i) {
      const at::Tensor expected = before[i].second.add(gradients[i].second, -0.1);
      EXPECT_TRUE(test::same_bits(after[i].second, expected)) << after[i].first;
    }
    return after;
  };
  EXPECT_EQ(test::differing(train(3), train(1)), "");
}

}  // namespace
}  // namespace headrace::runtime
