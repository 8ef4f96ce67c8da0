// What users' layers and losses do wrong, beyond tests/runtime/failure_test.cpp: each is an error
// that names its place, or a skipped update that leaves no trace.
#include <atomic>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "headrace/base/error.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/acts.h"
#include "tests/support/bits.h"
#include "tests/support/layouts.h"
#include "tests/support/messages.h"
#include "tests/support/nets.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;
using test::expect_says;
using test::message_of;

nn::Sequential around(const std::function<at::Tensor(const at::Tensor&)>& act) {
  const auto acts = [act](const at::Tensor& x, int) { return act(x); };
  return nn::Sequential(nn::Linear(12, 12), test::Acts(acts), nn::Linear(12, 5));
}

TEST(BadInput, WhatIsThrownNeedNotBeAStandardException) {
  const test::Task task = test::smooth(4);
  Pipeline pipeline(around([](const at::Tensor&) -> at::Tensor { throw 42; }),
                    test::options({3, "1F1B"}, 2));
  expect_says(message_of<base::Error>(
                  [&] { pipeline.step(task.input, task.target, model::cross_entropy()); }),
              {"worker 1", "1F0", "layer '1'", "std::exception"});
}

TEST(BadInput, AThrowWhileLayersAreMeasuredOrEvaluatedNamesTheLayer) {
  const test::Task task = test::smooth(4);
  const auto net =
      around([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("out of cheese"); });
  Pipeline measured(net, PipelineOptions(3).microbatches(2));
  expect_says(message_of<base::Error>(
                  [&] { measured.step(task.input, task.target, model::cross_entropy()); }),
              {"layer '1'", "out of cheese"});
  Pipeline evaluated(net, test::options({3, "1F1B"}, 2));
  expect_says(message_of<base::Error>([&] { evaluated.forward(task.input); }),
              {"layer '1'", "out of cheese"});
}

TEST(BadInput, AThrowInARecomputationNamesTheLayer) {
  const test::Task task = test::smooth(4);
  int calls = 0;
  Pipeline pipeline(around([&calls](const at::Tensor& x) {
                      if (calls++ == 2) throw std::runtime_error("out of cheese");
                      return x;
                    }),
                    test::options({1, "GPipe", Remat::kAlways}, 2));
  expect_says(message_of<base::Error>(
                  [&] { pipeline.step(task.input, task.target, model::cross_entropy()); }),
              {"0R0", "layer '1'", "out of cheese"});
}

TEST(BadInput, ALossThatThrowsIsNamedWithItsMicrobatch) {
  const test::Task task = test::smooth(4);
  Pipeline pipeline(task.net, test::options({2, "1F1B"}, 2));
  model::Loss loss = model::cross_entropy();
  loss.sum = [](const Tensors&, const at::Tensor& target) -> at::Tensor {
    throw std::runtime_error("no loss for " + std::to_string(target.size(0)) + " rows");
  };
  expect_says(message_of<base::Error>([&] { pipeline.step(task.input, task.target, loss); }),
              {"worker 1", "1F0", "microbatch 0", "layer 'loss'", "no loss for 2 rows"});
  EXPECT_TRUE(pipeline.step(task.input, task.target, model::cross_entropy()).finite);
}

TEST(BadInput, AWeightThatIsNoWeightIsRefused) {
  const test::Task task = test::smooth(4);
  Pipeline pipeline(task.net, test::options({2, "1F1B"}, 2));
  for (const double weight : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    model::Loss loss = model::cross_entropy();
    loss.weight = [weight](const at::Tensor&) { return weight; };
    expect_says(message_of<base::Error>([&] { pipeline.step(task.input, task.target, loss); }),
                {"weight", "finite number >= 0"});
  }
}

TEST(BadInput, ALabelThatIsNoClassIsAnErrorOfTheLoss) {
  test::Task task = test::smooth(4);
  task.target[3] = 5;
  Pipeline pipeline(task.net, test::options({2, "1F1B"}, 2));
  expect_says(message_of<base::Error>(
                  [&] { pipeline.step(task.input, task.target, model::cross_entropy()); }),
              {"1F1", "layer 'loss'", "5 is out of bounds"});
}

/// Its output is finite; its gradient is not while `poison` is on.
class RootImpl : public nn::Module {
 public:
  explicit RootImpl(const std::atomic<bool>* poison)
      : shift_(register_parameter("shift", at::ones({1}))), poison_(poison) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor distance = poison_->load() ? shift_ - shift_.detach() : shift_;
    return x + distance.sqrt();  // the square root has no derivative at 0
  }

 private:
  at::Tensor shift_;
  const std::atomic<bool>* poison_;
};
TORCH_MODULE(Root);

struct Weights {
  test::Named parameters;
  double loss = 0;
};

/// Three steps, the second one poisoned or left out.
Weights train(const test::Layout& layout, int place, bool poisoned) {
  torch::manual_seed(8);
  std::atomic<bool> poison{false};
  nn::Sequential net;
  for (int i = 0; i < 4; ++i) {
    if (i == place) net->push_back(Root(&poison));
    if (i < 3) net->push_back(nn::Linear(12, 12));
  }
  const at::Tensor input = at::randn({6, 12});
  const at::Tensor target = at::randint(12, {6}, at::kLong);
  Pipeline pipeline(net, test::options(layout, 3).optimizer(optim::optimizer_factory({})));
  pipeline.step(input, target, model::cross_entropy());
  if (poisoned) {
    poison = true;
    const StepResult result = pipeline.step(input, target, model::cross_entropy());
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_FALSE(std::isfinite(result.grad_norm));
    EXPECT_FALSE(result.finite);
    EXPECT_TRUE(result.skipped);
    poison = false;
  } else {
    pipeline.load_state({.seed = 0, .step = 2});
  }
  const StepResult last = pipeline.step(input, target, model::cross_entropy());
  EXPECT_EQ(pipeline.state().step, 3U);
  return {test::snapshot(pipeline.named_parameters()), last.loss};
}

TEST(BadInput, AGradientThatIsNotFiniteLeavesWeightsAndMomentsAlone) {
  for (const int place : {0, 1, 3}) {
    for (const test::Layout& layout : test::layouts({1, 3})) {
      SCOPED_TRACE(testing::Message() << layout << ", at layer " << place);
      const Weights skipped = train(layout, place, true);
      const Weights left_out = train(layout, place, false);
      EXPECT_EQ(skipped.loss, left_out.loss);
      EXPECT_EQ(test::differing(skipped.parameters, left_out.parameters), "");
    }
  }
}

TEST(BadInput, ALossThatIsNotFiniteSkipsTheUpdateInEveryLayout) {
  for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    for (const test::Layout& layout : test::layouts({1, 3})) {
      SCOPED_TRACE(testing::Message() << layout << ' ' << value);
      const test::Task task = test::pictures(6);
      Pipeline pipeline(task.net, test::options(layout, 3).optimizer(optim::optimizer_factory({})));
      const test::Named before = test::snapshot(pipeline.named_parameters());
      const test::Named buffers = test::snapshot(pipeline.named_buffers());
      model::Loss loss = model::cross_entropy();
      // A constant: no gradient tells of it.
      loss.sum = [value, sound = loss.sum](const Tensors& outputs, const at::Tensor& target) {
        const bool last = target.data_ptr() != nullptr && target.storage_offset() == 4;
        return sound(outputs, target) + (last ? value : 0);
      };
      const StepResult result = pipeline.step(task.input, task.target, loss);
      EXPECT_FALSE(result.finite);
      EXPECT_TRUE(result.skipped);
      EXPECT_EQ(test::differing(pipeline.named_parameters(), before), "");
      EXPECT_EQ(test::differing(pipeline.named_buffers(), buffers), "");
    }
  }
}

TEST(BadInput, ABackwardThatHangsEndsAtTheLimitAndIsNamed) {
  const auto door = std::make_shared<test::Door>();
  const test::Task task = test::smooth(4);
  {
    Pipeline pipeline(around([door](const at::Tensor& x) {
                        at::Tensor y = x * 2;
                        y.register_hook([door](const at::Tensor& gradient) {
                          door->wait();
                          return gradient;
                        });
                        return y;
                      }),
                      test::options({3, "1F1B"}, 2).timeout(std::chrono::milliseconds(300)));
    const auto start = std::chrono::steady_clock::now();
    expect_says(message_of<base::Error>(
                    [&] { pipeline.step(task.input, task.target, model::cross_entropy()); }),
                {"1B0", "0.3"});
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
  door->open();
}

}  // namespace
}  // namespace headrace::runtime
