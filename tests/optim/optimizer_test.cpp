#include "headrace/optim/optimizer.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "headrace/base/error.h"

namespace headrace::optim {
namespace {

std::vector<at::Tensor> make_parameters() {
  at::manual_seed(3);
  return {at::randn({17, 5}).requires_grad_(), at::randn({9}).requires_grad_()};
}

// Five updates with known gradients, the learning rate set anew before each.
void train(torch::optim::Optimizer& optimizer, std::vector<at::Tensor>& parameters) {
  at::manual_seed(4);
  for (int step = 0; step < 5; ++step) {
    for (at::Tensor& parameter : parameters) {
      parameter.mutable_grad() = at::randn(parameter.sizes());
    }
    set_lr(optimizer, 0.1 / (step + 1));
    optimizer.step();
  }
}

void expect_same_weights(
    const OptimizerSettings& settings,
    const std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>&
        reference) {
  std::vector<at::Tensor> ours = make_parameters();
  std::vector<at::Tensor> theirs = make_parameters();
  const auto our_optimizer = optimizer_factory(settings)(ours);
  const auto their_optimizer = reference(theirs);
  train(*our_optimizer, ours);
  train(*their_optimizer, theirs);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(at::equal(ours[i], theirs[i])) << "parameter " << i;
  }
}

TEST(OptimizerFactory, SgdEqualsTorchToTheBit) {
  expect_same_weights({.name = "sgd", .lr = 0.3, .weight_decay = 0.02, .momentum = 0.9},
                      [](std::vector<at::Tensor> parameters) {
                        return std::make_unique<torch::optim::SGD>(
                            std::move(parameters),
                            torch::optim::SGDOptions(0.3).momentum(0.9).weight_decay(0.02));
                      });
}

TEST(OptimizerFactory, AdamWEqualsTorchToTheBit) {
  expect_same_weights(
      {.name = "ADAMW", .lr = 2e-3, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6},
      [](std::vector<at::Tensor> parameters) {
        return std::make_unique<torch::optim::AdamW>(
            std::move(parameters),
            torch::optim::AdamWOptions(2e-3).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.1));
      });
}

TEST(OptimizerFactory, OnePerStageEqualsOneForAll) {
  std::vector<at::Tensor> whole = make_parameters();
  std::vector<at::Tensor> parts = make_parameters();
  const OptimizerFactory factory = optimizer_factory({});
  const auto one = factory(whole);
  const auto first = factory({parts[0]});
  const auto second = factory({parts[1]});
  at::manual_seed(6);
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      whole[i].mutable_grad() = at::randn(whole[i].sizes());
      parts[i].mutable_grad() = whole[i].grad().clone();
    }
    one->step();
    first->step();
    second->step();
  }
  EXPECT_TRUE(at::equal(whole[0], parts[0]));
  EXPECT_TRUE(at::equal(whole[1], parts[1]));
}

TEST(OptimizerFactory, TakesAStageWithoutParameters) {
  for (const char* name : {"SGD", "AdamW"}) {
    const auto optimizer = optimizer_factory({.name = name})({});
    set_lr(*optimizer, 0.5);
    EXPECT_NO_THROW(optimizer->step()) << name;
  }
}

TEST(SetLr, ReachesEveryGroup) {
  std::vector<at::Tensor> parameters = make_parameters();
  torch::optim::SGD optimizer(
      std::vector<torch::optim::OptimizerParamGroup>{
          torch::optim::OptimizerParamGroup({parameters[0]}),
          torch::optim::OptimizerParamGroup({parameters[1]})},
      torch::optim::SGDOptions(0.1));
  set_lr(optimizer, 0.25);
  ASSERT_EQ(optimizer.param_groups().size(), 2U);
  for (const auto& group : optimizer.param_groups()) {
    EXPECT_EQ(group.options().get_lr(), 0.25);
  }
}

TEST(OptimizerFactory, NamesTheNearestOfAnUnknownName) {
  try {
    optimizer_factory({.name = "AdmaW"});
    FAIL() << "accepted";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'AdamW'"), std::string::npos)
        << error.what();
  }
}

TEST(OptimizerFactory, RefusesNumbersThatCannotBeAllAtOnce) {
  try {
    optimizer_factory({.lr = std::numeric_limits<double>::infinity(),
                       .weight_decay = -0.1,
                       .beta1 = 1.0,
                       .eps = std::numeric_limits<double>::quiet_NaN()});
    FAIL() << "accepted";
  } catch (const base::ConfigError& error) {
    const std::string text = error.what();
    for (const char* part : {"lr ", "inf", "weight_decay", "-0.1", "beta1", "eps", "nan"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
    }
    EXPECT_EQ(text.find("beta2"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace headrace::optim
