// Faults of other systems at the boundaries between stages: values without a gradient,
// microbatches that meet the wrong labels, evaluations between steps.
#include <chrono>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "headrace/model/layer.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/bits.h"
#include "tests/support/layouts.h"
#include "tests/support/nets.h"
#include "tests/support/oracle.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

constexpr std::int64_t kVocabulary = 20;
constexpr std::int64_t kWidth = 8;

/// ids [N, T] -> hidden [N, T, D], mask [N, T] (bool, expanded), ids, position [N, T] (fp32 without
/// a gradient).
class Embed : public model::Layer {
 public:
  Embed() : table_(register_module("table", nn::Embedding(kVocabulary, kWidth))) {}
  Tensors forward(Tensors inputs) override {
    const at::Tensor& ids = inputs[0];
    const at::Tensor mask = ids.select(1, 0).gt(0).unsqueeze(1).expand_as(ids);
    const at::Tensor position = at::arange(ids.size(1), at::kFloat).expand_as(ids).clone();
    return {table_(ids.remainder(kVocabulary)), mask, ids, position};
  }

 private:
  nn::Embedding table_;
};

/// Uses all four, changes the first, hands the others on as they came. Of microbatches whose first
/// id is odd it hands on `hidden` without its gradient, so that what needs one differs between
/// microbatches.
class Mix : public model::Layer {
 public:
  explicit Mix(bool cuts_gradient) : cuts_gradient_(cuts_gradient) {
    linear_ = register_module("linear", nn::Linear(kWidth, kWidth));
  }
  Tensors forward(Tensors inputs) override {
    at::Tensor hidden = at::tanh(linear_(inputs[0])) + 0.01 * inputs[3].unsqueeze(-1);
    hidden = hidden.masked_fill(inputs[1].logical_not().unsqueeze(-1), 0.5);
    if (cuts_gradient_ && inputs[2][0][0].item<std::int64_t>() % 2 != 0) hidden = hidden.detach();
    return {hidden, inputs[1], inputs[2], inputs[3]};
  }

 private:
  bool cuts_gradient_;
  nn::Linear linear_{nullptr};
};

/// Adds a second differentiable output that nobody uses.
class Fork : public model::Layer {
 public:
  Fork() : scale_(register_parameter("scale", at::ones({kWidth}))) {}
  Tensors forward(Tensors inputs) override {
    inputs.push_back(inputs[0] * scale_);
    return inputs;
  }

 private:
  at::Tensor scale_;
};

class Head : public model::Layer {
 public:
  Head() : linear_(register_module("linear", nn::Linear(kWidth, kVocabulary))) {}
  Tensors forward(Tensors inputs) override {
    inputs[0] = linear_(inputs[0]);
    return inputs;
  }

 private:
  nn::Linear linear_;
};

model::Loss first_output_loss() {
  model::Loss loss;
  loss.sum = [](const Tensors& outputs, const at::Tensor& target) {
    return at::cross_entropy_loss(outputs[0].flatten(0, 1), target.flatten(), {},
                                  at::Reduction::Sum);
  };
  loss.weight = [](const at::Tensor& target) { return static_cast<double>(target.numel()); };
  return loss;
}

// pytorch/pytorch#153484: a boundary value without a gradient stops the backward.
TEST(Boundaries, CarryIntegersMasksAndValuesWithoutAGradient) {
  torch::manual_seed(5);
  const std::vector<std::shared_ptr<model::Layer>> layers{
      std::make_shared<Embed>(), std::make_shared<Mix>(false), std::make_shared<Fork>(),
      std::make_shared<Mix>(true), std::make_shared<Head>()};
  nn::Sequential net;
  for (const auto& layer : layers) net->push_back(nn::AnyModule(layer));
  at::Tensor ids = at::randint(1, 100, {6, 5}, at::kLong);
  ids.select(1, 0).copy_(at::tensor({2, 3, 4, 5, 0, 6}, at::kLong));
  ids[0][1] = (std::int64_t{1} << 53) + 1;  // no float holds it
  ids[3][2] = std::numeric_limits<std::int64_t>::max();
  const at::Tensor target = at::randint(kVocabulary, {6, 5}, at::kLong);
  const model::Loss loss = first_output_loss();
  const auto run = [&](Tensors values) {
    for (const auto& layer : layers) values = layer->forward(values);
    return values;
  };
  const double expected_loss = test::oracle_backward(
      net->parameters(), {1, 1, 1, 1, 1, 1}, [&](std::int64_t first, std::int64_t rows) {
        return loss.sum(run({ids.narrow(0, first, rows)}), target.narrow(0, first, rows)) / 30.0;
      });
  const test::Named expected = test::gradients(test::parameters_of(net));
  const Tensors values = run({ids});
  for (const test::Layout& layout : test::layouts({1, 2, 3, 5})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(net, test::options(layout, 6));
    const StepResult result = pipeline.step(ids, target, loss, StepOptions().keep_outputs());
    EXPECT_EQ(result.loss, expected_loss);
    EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), expected), "");
    ASSERT_EQ(result.outputs.size(), 4U);
    for (const std::size_t i : {1, 2, 3}) {
      EXPECT_TRUE(test::same_bits(result.outputs[i], values[i])) << "output " << i;
    }
  }
}

/// Hands its input on after a while: another while for each stage and microbatch.
class LateImpl : public nn::Module {
 public:
  explicit LateImpl(int stage) : stage_(stage) {}
  at::Tensor forward(const at::Tensor& x) {
    const auto id = static_cast<unsigned>(x[0][0].item<float>());
    std::this_thread::sleep_for(std::chrono::milliseconds((id * 7 + stage_ * 5) % 4));
    return x * 1;
  }

 private:
  unsigned stage_;
};
TORCH_MODULE(Late);

// deepspeedai/DeepSpeed#5729: outputs of one microbatch meet the labels of another.
TEST(Boundaries, EachMicrobatchMeetsItsOwnLabelsWhateverItsDelays) {
  const nn::Sequential net(Late(0), Late(1), Late(2));
  const at::Tensor input = at::arange(10, at::kFloat).unsqueeze(1).requires_grad_();
  const at::Tensor label = at::arange(10, at::kFloat);
  model::Loss loss;  // the square of the sample's number, and something else for any other label
  loss.sum = [](const Tensors& outputs, const at::Tensor& target) {
    return (outputs[0].squeeze(1) - 2 * target).square().sum();
  };
  loss.weight = [](const at::Tensor& target) { return static_cast<double>(target.size(0)); };
  for (const test::Layout& layout : test::layouts({1, 2, 3})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(net, test::options(layout, 5));
    for (int i = 0; i < 3; ++i) {
      const StepResult result = pipeline.step(input, label, loss, StepOptions().keep_outputs());
      ASSERT_EQ(result.microbatch_losses.size(), 5U);
      for (int m = 0; m < 5; ++m) {
        const double alone = 4 * m * m + (2 * m + 1) * (2 * m + 1);
        EXPECT_NEAR(result.microbatch_losses[m], alone / 10, 1e-6 * alone) << "microbatch " << m;
      }
      EXPECT_TRUE(test::same_bits(result.outputs.at(0), input));
    }
  }
}

// pytorch/pytorch#162822: an evaluation before the first training step leaves its backward unset.
TEST(Boundaries, EvaluationsBetweenStepsChangeNothing) {
  for (const test::Layout& layout : test::layouts({1, 3})) {
    SCOPED_TRACE(testing::Message() << layout);
    const auto train = [&](bool evaluate) {
      test::Task task = test::pictures(9);
      Pipeline pipeline(task.net, test::options(layout, 3).optimizer(optim::optimizer_factory({})));
      const auto generator = at::globalContext().defaultGenerator(at::kCPU);
      test::Named trace;
      for (int i = 0; i < 2; ++i) {
        if (evaluate) {
          const at::Tensor state = generator.get_state();
          const test::Named gradients = test::gradients(pipeline.named_parameters());
          const test::Named buffers = test::snapshot(pipeline.named_buffers());
          pipeline.forward(task.input.narrow(0, 0, 5));
          EXPECT_TRUE(test::same_bits(generator.get_state(), state));
          EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), gradients), "");
          EXPECT_EQ(test::differing(test::snapshot(pipeline.named_buffers()), buffers), "");
          EXPECT_EQ(pipeline.state().step, static_cast<std::uint64_t>(i));
        }
        const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
        trace.emplace_back("loss", at::tensor({result.loss, result.grad_norm}, at::kDouble));
      }
      for (const auto& named : {pipeline.named_parameters(), pipeline.named_buffers()}) {
        for (const auto& item : test::snapshot(named)) trace.push_back(item);
      }
      return trace;
    };
    EXPECT_EQ(test::differing(train(true), train(false)), "");
  }
}

TEST(Boundaries, AnEvaluationBetweenAccumulatingCallsLosesNothing) {
  test::Task task = test::smooth(8);
  for (const test::Layout& layout : test::layouts({1, 3})) {
    SCOPED_TRACE(testing::Message() << layout);
    const auto gradients = [&](bool evaluate) {
      Pipeline pipeline(task.net, test::options(layout, 2));
      StepOptions options;
      options.total_weight(8);
      for (int call = 0; call < 2; ++call) {
        pipeline.step(task.input.narrow(0, 4 * call, 4), task.target.narrow(0, 4 * call, 4),
                      model::cross_entropy(), options);
        if (evaluate) pipeline.forward(task.input);
        options.accumulate();
      }
      return test::gradients(pipeline.named_parameters());
    };
    EXPECT_EQ(test::differing(gradients(true), gradients(false)), "");
  }
}

// hpcaitech/ColossalAI#5683: only the last stage knows the loss.
TEST(Boundaries, EveryLayoutTellsTheSameFiniteLossInEveryStep) {
  std::vector<double> expected;
  for (const test::Layout& layout : test::layouts({1, 2, 3, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    test::Task task = test::smooth(10);
    Pipeline pipeline(task.net, test::options(layout, 4).optimizer(optim::optimizer_factory({})));
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i) {
      losses.push_back(pipeline.step(task.input, task.target, model::cross_entropy()).loss);
      EXPECT_TRUE(std::isfinite(losses.back()));
    }
    if (expected.empty()) expected = losses;
    EXPECT_EQ(losses, expected);
  }
  EXPECT_NE(expected.at(0), expected.at(3)) << "nothing was trained";
}

}  // namespace
}  // namespace headrace::runtime
