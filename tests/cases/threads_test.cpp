// Faults of other systems where several threads run backwards over what they share.
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "headrace/runtime/pipeline.h"

#include "tests/support/acts.h"
#include "tests/support/bits.h"
#include "tests/support/layouts.h"
#include "tests/support/nets.h"
#include "tests/support/oracle.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

/// Embedding and head share a weight; one Linear stands at two places.
struct Tied {
  Tied() {
    torch::manual_seed(6);
    const nn::Embedding embedding(11, 8);
    const nn::Linear twice(8, 8);
    net = nn::Sequential(embedding, twice, nn::Tanh(), twice, test::TiedHead(embedding->weight));
    input = at::randint(11, {12, 5}, at::kLong);
    target = at::randint(11, {12, 5}, at::kLong);
  }
  nn::Sequential net{nullptr};
  at::Tensor input;
  at::Tensor target;
};

at::Tensor leaf(const at::Tensor& tensor) {
  return tensor.detach().clone().requires_grad_();
}

/// Each use as a weight of its own, in plain LibTorch on one thread; the uses of one weight are
/// added in the order of the layers. Named as the pipeline names them.
test::Named untied_gradients(const Tied& tied) {
  const at::Tensor table = tied.net->named_parameters()["0.weight"];
  const at::Tensor weight = tied.net->named_parameters()["1.weight"];
  const at::Tensor bias = tied.net->named_parameters()["1.bias"];
  const at::Tensor head = leaf(table), first = leaf(table);
  const at::Tensor w1 = leaf(weight), w2 = leaf(weight), b1 = leaf(bias), b2 = leaf(bias);
  test::oracle_backward(
      {first, head, w1, w2, b1, b2}, {3, 3, 3, 3}, [&](std::int64_t row, std::int64_t rows) {
        const at::Tensor hidden =
            at::tanh(at::linear(at::embedding(first, tied.input.narrow(0, row, rows)), w1, b1));
        const at::Tensor logits = at::linear(at::linear(hidden, w2, b2), head);
        return at::cross_entropy_loss(logits.flatten(0, 1),
                                      tied.target.narrow(0, row, rows).flatten(), {},
                                      at::Reduction::Sum) /
               60.0;
      });
  return {{"0.weight", first.grad() + head.grad()},
          {"1.weight", w1.grad() + w2.grad()},
          {"1.bias", b1.grad() + b2.grad()}};
}

// pytorch/pytorch#18333, PR 33157: backwards of several threads over one parameter.
TEST(Threads, BackwardsOverTiedWeightsEqualThoseOfOneThread) {
  const test::Named expected = untied_gradients(Tied());
  for (const test::Layout& layout : test::layouts({1, 2, 3, 5})) {
    SCOPED_TRACE(testing::Message() << layout);
    const Tied tied;
    Pipeline pipeline(tied.net, test::options(layout, 4));
    for (int i = 0; i < 10; ++i) {  // a race shows itself now and then
      pipeline.step(tied.input, tied.target, model::cross_entropy());
      ASSERT_EQ(test::differing(test::gradients(pipeline.named_parameters()), expected), "");
    }
  }
}

/// Ten steps of a task: losses, weights and buffers.
test::Named train(test::Task& task) {
  Pipeline pipeline(
      task.net,
      test::options({2, "1F1B", Remat::kAlways}, 4).optimizer(optim::optimizer_factory({})));
  test::Named trace;
  for (int i = 0; i < 10; ++i) {
    const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
    trace.emplace_back("loss", at::tensor(result.loss, at::kDouble));
  }
  for (const auto& item : test::snapshot(pipeline.named_parameters())) trace.push_back(item);
  for (const auto& item : test::snapshot(pipeline.named_buffers())) trace.push_back(item);
  return trace;
}

TEST(Threads, PipelinesOfSeveralCallersDoNotDisturbEachOther) {
  constexpr int kCallers = 3;
  std::vector<test::Task> tasks;  // built here: a net draws from the global generator
  std::vector<test::Named> expected;
  for (int i = 0; i < kCallers; ++i) {
    test::Task alone = test::pictures(8, /*dropout=*/0.25, 10 + i);
    expected.push_back(train(alone));
    tasks.push_back(test::pictures(8, /*dropout=*/0.25, 10 + i));
  }
  std::vector<test::Named> actual(kCallers);
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&, i] { actual[i] = train(tasks[i]); });
    }
  }
  for (int i = 0; i < kCallers; ++i) EXPECT_EQ(test::differing(actual[i], expected[i]), "") << i;
}

}  // namespace
}  // namespace headrace::runtime
