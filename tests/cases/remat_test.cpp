// Faults of other systems in rematerialisation: state that moves twice, masks drawn anew, inputs
// changed twice.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "headrace/base/error.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/bits.h"
#include "tests/support/layouts.h"
#include "tests/support/nets.h"
#include "tests/support/oracle.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

const at::Tensor& tensor_of(const test::Named& named, const std::string& name) {
  for (const auto& [known, tensor] : named) {
    if (known == name) return tensor;
  }
  throw std::out_of_range(name);
}

// pytorch/pytorch#96136: recomputing updates BatchNorm's statistics a second time.
TEST(Remat, CountsBatchNormStatisticsOnce) {
  test::Named expected;
  for (const test::Layout& layout : test::layouts({1, 2, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    test::Task task = test::pictures(9);
    Pipeline pipeline(task.net, test::options(layout, 3));
    for (int i = 0; i < 3; ++i) pipeline.step(task.input, task.target, model::cross_entropy());
    const test::Named buffers = test::snapshot(pipeline.named_buffers());
    EXPECT_EQ(tensor_of(buffers, "1.num_batches_tracked").item<std::int64_t>(), 3);
    EXPECT_EQ(tensor_of(buffers, "5.num_batches_tracked").item<std::int64_t>(), 3);
    if (expected.empty()) expected = buffers;
    EXPECT_EQ(test::differing(buffers, expected), "");
  }
}

TEST(Remat, OfOneMicrobatchLeavesBatchNormAsLibTorchDoes) {
  test::Task plain = test::pictures(9, /*dropout=*/0);
  for (int i = 0; i < 3; ++i) test::oracle_backward(plain.net, plain.input, plain.target, {9});
  for (const test::Layout& layout : test::layouts({1, 2, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    test::Task task = test::pictures(9, /*dropout=*/0);
    Pipeline pipeline(task.net, test::options(layout, 1));
    for (int i = 0; i < 3; ++i) pipeline.step(task.input, task.target, model::cross_entropy());
    EXPECT_EQ(test::differing(pipeline.named_buffers(), test::buffers_of(plain.net)), "");
  }
}

TEST(Remat, MergesMicrobatchesIntoTheStatisticsOfTheWholeBatch) {
  test::Task plain = test::pictures(9, /*dropout=*/0);
  test::oracle_backward(plain.net, plain.input, plain.target, {9});
  const test::Named whole = test::buffers_of(plain.net);
  for (const test::Layout& layout : test::layouts({1, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    test::Task task = test::pictures(9, /*dropout=*/0);
    Pipeline pipeline(task.net, test::options(layout, 4));
    pipeline.step(task.input, task.target, model::cross_entropy());
    const test::Named merged = pipeline.named_buffers();
    // Only the first BatchNorm sees the same values however the batch is divided.
    for (const char* name : {"1.running_mean", "1.running_var"}) {
      EXPECT_EQ(
          test::further_apart({{name, tensor_of(merged, name)}}, {{name, tensor_of(whole, name)}}),
          "");
    }
  }
}

/// Draws in every way that a forward may: with LibTorch's functions instead of modules.
class NoiseImpl : public nn::Module {
 public:
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = at::dropout(x, 0.5, /*train=*/true) + 0.1 * at::randn_like(x);
    y = y * (1 + at::rand(x.sizes())) + at::bernoulli(at::full_like(x, 0.5));
    const at::Tensor order = at::randperm(x.size(1), at::kLong);
    return y.index_select(1, order) + at::multinomial(at::ones({x.size(0), 3}), 1).to(x.dtype());
  }
};
TORCH_MODULE(Noise);

nn::Sequential noisy_net() {
  torch::manual_seed(2);
  return nn::Sequential(nn::Linear(12, 16), nn::Dropout(0.5), nn::Linear(16, 16), Noise(),
                        nn::AlphaDropout(0.5), nn::Linear(16, 5), nn::Dropout(0.5));
}

// allenai/OLMo-core PR 828: recomputing draws a fresh dropout mask.
TEST(Remat, DrawsTheSameMasksAgain) {
  const test::Task batch = test::smooth(8);
  const auto generator = at::globalContext().defaultGenerator(at::kCPU);
  test::Named expected;
  for (const test::Layout& layout : test::layouts({1, 2, 4})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(noisy_net(), test::options(layout, 3));
    const at::Tensor state = generator.get_state();
    pipeline.step(batch.input, batch.target, model::cross_entropy());
    EXPECT_TRUE(test::same_bits(generator.get_state(), state)) << "the global generator moved";
    const test::Named gradients = test::gradients(pipeline.named_parameters());
    if (expected.empty()) expected = gradients;
    EXPECT_EQ(test::differing(gradients, expected), "");
  }
}

TEST(Remat, DrawsOtherMasksForEachMicrobatchLayerAndStep) {
  const nn::Sequential net(nn::Dropout(0.5), nn::Dropout(0.5));
  const at::Tensor input = at::ones({4, 64});
  model::Loss loss;
  loss.sum = [](const Tensors& outputs, const at::Tensor&) { return outputs[0].sum(); };
  loss.weight = [](const at::Tensor& target) { return static_cast<double>(target.size(0)); };
  for (const test::Layout& layout : test::layouts({1, 2})) {
    SCOPED_TRACE(testing::Message() << layout);
    Pipeline pipeline(net, test::options(layout, 2));
    const auto step = [&] {
      return pipeline.step(input, at::zeros({4}), loss, StepOptions().keep_outputs()).outputs[0];
    };
    const at::Tensor first = step();
    EXPECT_FALSE(test::same_bits(first.narrow(0, 0, 2), first.narrow(0, 2, 2)));
    EXPECT_TRUE(first.eq(4).logical_or(first.eq(0)).all().item<bool>());
    // Two layers with one mask would keep half of the values instead of a quarter.
    EXPECT_NEAR(first.ne(0).to(at::kFloat).mean().item<double>(), 0.25, 0.1);
    EXPECT_FALSE(test::same_bits(step(), first));
  }
}

/// Changes its input in place, each time anew.
class InPlaceImpl : public nn::Module {
 public:
  using Change = void (*)(at::Tensor);
  explicit InPlaceImpl(Change change) : change_(change) {}
  at::Tensor forward(const at::Tensor& x) {
    change_(x);
    return x;
  }

 private:
  Change change_;
};
TORCH_MODULE(InPlace);

class TimesImpl : public nn::Module {
 public:
  TimesImpl() : weight_(register_parameter("weight", at::ones({1}))) {}
  at::Tensor forward(const at::Tensor& x) { return x * weight_; }

 private:
  at::Tensor weight_;
};
TORCH_MODULE(Times);

struct InPlaceCase {
  std::string what;
  InPlaceImpl::Change change;
};

const std::vector<InPlaceCase> kInPlace{
    {"adds one", [](at::Tensor x) { x.add_(1); }},
    {"adds one to a view", [](at::Tensor x) { x.view({-1}).narrow(0, 0, x.numel()).add_(1); }},
    {"adds one to what it detaches", [](at::Tensor x) { x.detach().add_(1); }},
    {"copies", [](at::Tensor x) { x.copy_(x + 1); }},
};

/// The gradient of the last layer's weight, or the layer that was refused.
std::string outcome(const nn::Sequential& net, const PipelineOptions& options) {
  model::Loss loss;
  loss.sum = [](const Tensors& outputs, const at::Tensor&) { return outputs[0].sum(); };
  loss.weight = [](const at::Tensor& target) { return static_cast<double>(target.size(0)); };
  Pipeline pipeline(net, options);
  try {
    pipeline.step(at::ones({4, 1}), at::zeros({4}), loss);
  } catch (const base::ConfigError& error) {
    const std::string text = error.what();
    const bool named = text.find("layer '1' changes input 0 of stage") != std::string::npos;
    return named ? "refused" : text;
  }
  return "gradient " + std::to_string(net->parameters().back().grad().item<double>());
}

// kakaobrain/torchgpipe, a known limit in its tests: an in-place operation on an input that needs
// no gradient is done twice.
TEST(Remat, NeverChangesAnInputTwice) {
  for (const InPlaceCase& in_place : kInPlace) {
    for (const int microbatches : {1, 2}) {
      for (const test::Layout& layout : test::layouts({1, 2, 3})) {
        SCOPED_TRACE(testing::Message()
                     << in_place.what << ", " << layout << ", M=" << microbatches);
        const nn::Sequential net(nn::Identity(), InPlace(in_place.change), Times());
        PipelineOptions options = test::options(layout, microbatches);
        if (layout.workers == 2) options.layers_per_stage({1, 2});
        const bool recomputes = layout.remat == Remat::kAlways ||
                                (layout.remat == Remat::kExceptLast && microbatches > 1);
        EXPECT_EQ(outcome(net, options), recomputes ? "refused" : "gradient 2.000000");
      }
    }
  }
}

TEST(Remat, AllowsInPlaceLayersBehindOthersInAStage) {
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(6, 8), nn::ReLU(nn::ReLUOptions(true)), nn::Linear(8, 8),
                     nn::Dropout(nn::DropoutOptions(0.0).inplace(true)),
                     nn::ELU(nn::ELUOptions().inplace(true)), nn::Linear(8, 3));
  const at::Tensor input = at::randn({7, 6});
  const at::Tensor target = at::randint(3, {7}, at::kLong);
  const double loss = test::oracle_backward(net, input, target, {3, 2, 2});
  const test::Named expected = test::gradients(test::parameters_of(net));
  for (const test::Layout& layout : test::layouts({1, 2})) {
    SCOPED_TRACE(testing::Message() << layout);
    PipelineOptions options = test::options(layout, 3);
    if (layout.workers == 2) options.layers_per_stage({2, 4});
    Pipeline pipeline(net, options);
    EXPECT_EQ(pipeline.step(input, target, model::cross_entropy()).loss, loss);
    EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), expected), "");
  }
}

}  // namespace
}  // namespace headrace::runtime
