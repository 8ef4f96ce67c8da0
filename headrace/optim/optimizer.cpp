#include "headrace/optim/optimizer.h"

#include <cmath>
#include <utility>

#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/optim/choice.h"

namespace headrace::optim {
namespace {

using Parameters = std::vector<at::Tensor>;

void check_numbers(const OptimizerSettings& settings) {
  std::string mistakes;
  const auto require = [&mistakes](const char* what, double value, double limit) {
    if (!(value >= 0) || !(value < limit)) {
      mistakes += std::string(mistakes.empty() ? "" : "; ") + what + " must be finite, at least 0" +
                  (std::isinf(limit) ? "" : " and below 1") + ", found " + base::exact_text(value);
    }
  };
  require("lr", settings.lr, HUGE_VAL);
  require("weight_decay", settings.weight_decay, HUGE_VAL);
  require("momentum", settings.momentum, HUGE_VAL);
  require("beta1", settings.beta1, 1.0);
  require("beta2", settings.beta2, 1.0);
  require("eps", settings.eps, HUGE_VAL);
  if (!mistakes.empty()) {
    throw base::ConfigError("optimizer " + settings.name + ": " + mistakes);
  }
}

}  // namespace

OptimizerFactory optimizer_factory(const OptimizerSettings& settings) {
  const std::size_t chosen = choose("optimizer", settings.name, {"SGD", "AdamW"});
  check_numbers(settings);
  if (chosen == 0) {
    const auto options = torch::optim::SGDOptions(settings.lr)
                             .momentum(settings.momentum)
                             .weight_decay(settings.weight_decay);
    return [options](Parameters parameters) -> std::unique_ptr<torch::optim::Optimizer> {
      return std::make_unique<torch::optim::SGD>(std::move(parameters), options);
    };
  }
  const auto options = torch::optim::AdamWOptions(settings.lr)
                           .betas({settings.beta1, settings.beta2})
                           .eps(settings.eps)
                           .weight_decay(settings.weight_decay);
  return [options](Parameters parameters) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<torch::optim::AdamW>(std::move(parameters), options);
  };
}

void set_lr(torch::optim::Optimizer& optimizer, double lr) {
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    group.options().set_lr(lr);
  }
}

}  // namespace headrace::optim
