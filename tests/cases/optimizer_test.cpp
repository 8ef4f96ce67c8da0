// Faults of other systems around the update: clipping at each microbatch, initial weights that
// depend on the layout.
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "headrace/model/transformer.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/bits.h"
#include "tests/support/layouts.h"
#include "tests/support/nets.h"
#include "tests/support/oracle.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

constexpr double kLr = 0.25;

/// Regression to far targets: gradients of norm 1e4 and more.
struct Steep {
  Steep() {
    torch::manual_seed(4);
    net = nn::Sequential(nn::Linear(6, 8), nn::Tanh(), nn::Linear(8, 8), nn::Tanh(),
                         nn::Linear(8, 2));
    input = at::randn({8, 6});
    target = at::randn({8, 2}) * 1e4;
  }
  at::Tensor share(std::int64_t first, std::int64_t rows) {
    return at::mse_loss(net->forward(input.narrow(0, first, rows)), target.narrow(0, first, rows),
                        at::Reduction::Sum) /
           2.0 / 8.0;
  }
  void descend(double max_norm) {
    nn::utils::clip_grad_norm_(net->parameters(), max_norm);
    torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(kLr)).step();
  }

  nn::Sequential net{nullptr};
  at::Tensor input;
  at::Tensor target;
};

double distance(const test::Named& a, const test::Named& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += (a[i].second - b[i].second).to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

optim::OptimizerFactory sgd() {
  return optim::optimizer_factory({.name = "SGD", .lr = kLr, .weight_decay = 0});
}

// huggingface/accelerate#641: gradients are clipped at each microbatch.
TEST(Optimizer, ClipsOncePerUpdateAndNotPerMicrobatch) {
  Steep plain;
  const test::Named before = test::snapshot(test::parameters_of(plain.net));
  test::oracle_backward(plain.net->parameters(), {2, 2, 2, 2},
                        [&](auto first, auto rows) { return plain.share(first, rows); });
  const double norm = nn::utils::clip_grad_norm_(plain.net->parameters(), 1e30);
  EXPECT_GT(norm, 1e3);
  plain.descend(1.0);
  Steep wrong;  // what clipping each microbatch comes to
  test::oracle_backward(wrong.net->parameters(), {2, 2, 2, 2}, [&](auto first, auto rows) {
    nn::utils::clip_grad_norm_(wrong.net->parameters(), 1.0);
    return wrong.share(first, rows);
  });
  wrong.descend(1.0);
  EXPECT_NE(test::further_apart(test::parameters_of(wrong.net), test::parameters_of(plain.net)), "")
      << "this case cannot tell the two apart";

  std::optional<double> told;
  for (const test::Layout& layout : test::layouts({1, 2, 3})) {
    SCOPED_TRACE(testing::Message() << layout);
    Steep steep;
    Pipeline pipeline(steep.net, test::options(layout, 4).max_norm(1.0).optimizer(sgd()));
    const StepResult result = pipeline.step(steep.input, steep.target, model::mse());
    EXPECT_NEAR(result.grad_norm, norm, 1e-6 * norm) << "told before clipping";
    if (!told) told = result.grad_norm;
    EXPECT_EQ(result.grad_norm, *told);
    EXPECT_NEAR(distance(pipeline.named_parameters(), before), kLr, 1e-4 * kLr);
    EXPECT_EQ(test::further_apart(pipeline.named_parameters(), test::parameters_of(plain.net)), "");
  }
}

TEST(Optimizer, AccumulatingCallsLeaveTheClipToTheirUpdate) {
  Steep plain;
  test::oracle_backward(plain.net->parameters(), {2, 2, 2, 2},
                        [&](auto first, auto rows) { return plain.share(first, rows); });
  const test::Named expected = test::gradients(test::parameters_of(plain.net));
  for (const test::Layout& layout : test::layouts({1, 3})) {
    SCOPED_TRACE(testing::Message() << layout);
    Steep steep;
    Pipeline pipeline(steep.net, test::options(layout, 1));
    for (int call = 0; call < 4; ++call) {
      pipeline.step(steep.input.narrow(0, 2 * call, 2), steep.target.narrow(0, 2 * call, 2),
                    model::mse(), StepOptions().accumulate(call > 0).total_weight(8));
    }
    EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), expected), "");
  }
}

model::TransformerOptions small_transformer(bool tied) {
  return {.source_vocabulary = 30,
          .target_vocabulary = 24,
          .width = 16,
          .heads = 2,
          .feed_forward = 32,
          .encoder_layers = 3,
          .decoder_layers = 3,
          .tied_embedding = tied};
}

test::Named initial_weights(bool tied, std::uint64_t seed, int workers) {
  const Pipeline pipeline(model::translation_transformer(small_transformer(tied), seed),
                          test::options({.workers = workers}, 2));
  return test::snapshot(pipeline.named_parameters());
}

bool is_constant(const at::Tensor& tensor) {  // biases start at 0, scales of norms at 1
  return tensor.eq(tensor.flatten()[0]).all().item<bool>();
}

// pytorch/pytorch#139304, pytorch/torchtitan#514: each stage seeds alike, so layers start equal.
TEST(Optimizer, InitialWeightsDependOnSeedAndNameOnly) {
  for (const bool tied : {false, true}) {
    torch::manual_seed(1);
    const test::Named expected = initial_weights(tied, 7, 1);
    for (const int workers : {1, 2, 4}) {
      torch::manual_seed(workers);  // must not matter
      EXPECT_EQ(test::differing(initial_weights(tied, 7, workers), expected), "") << workers;
    }
    const test::Named other = initial_weights(tied, 8, 1);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (is_constant(expected[i].second)) continue;
      EXPECT_FALSE(test::same_bits(other[i].second, expected[i].second)) << expected[i].first;
    }
  }
}

TEST(Optimizer, NoTwoLayersStartEqual) {
  const test::Named weights = initial_weights(false, 7, 4);
  std::set<double> firsts;  // equal streams start with equal draws, also at other scales
  int drawn = 0;
  for (const auto& [name, tensor] : weights) {
    if (is_constant(tensor)) continue;
    ++drawn;
    const at::Tensor flat = tensor.flatten();
    EXPECT_TRUE(firsts.insert((flat[0] / flat[1]).item<double>()).second) << name;
  }
  EXPECT_GT(drawn, 20);
}

}  // namespace
}  // namespace headrace::runtime
