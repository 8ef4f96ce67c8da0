// Optimizers by name, and how the learning rate reaches them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
}

namespace headrace::optim {

/// Makes an optimizer for the parameters of one stage. Element-wise optimizers only (SGD, AdamW,
/// RMSprop, ...): one per stage then equals one for the whole model.
using OptimizerFactory =
    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor> parameters)>;

struct OptimizerSettings {
  std::string name = "AdamW";  // "SGD" or "AdamW", case-insensitive
  double lr = 1e-3;
  double weight_decay = 0.01;
  double momentum = 0.0;  // SGD
  double beta1 = 0.9;     // AdamW
  double beta2 = 0.999;   // AdamW
  double eps = 1e-8;      // AdamW
};

/// torch's own SGD or AdamW under these settings. What it makes may be called for no parameters.
/// @throws base::ConfigError for an unknown name (the nearest named), or for numbers that are
/// negative, not finite, or betas of 1 and more (all named at once).
OptimizerFactory optimizer_factory(const OptimizerSettings& settings);

/// Sets the learning rate of every parameter group.
void set_lr(torch::optim::Optimizer& optimizer, double lr);

}  // namespace headrace::optim
