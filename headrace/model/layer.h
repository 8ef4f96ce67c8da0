// The layer contract: what a pipeline is cut from. A layer is any stock torch::nn module that maps
// one tensor to one, or a model::Layer, which maps a list of tensors to a list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace torch::nn {
class AnyModule;
}

namespace headrace::model {

/// What flows between layers: one or more tensors, always in the same order.
using Tensors = std::vector<at::Tensor>;

/// A layer with several inputs or outputs. It may be pushed into a torch::nn::Sequential like any
/// other module. Values that it only hands on are returned as they came.
/// Thread rule: one thread at a time per object; the runtime keeps a layer on one worker.
class Layer : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;

  /// Integers, masks and values without a gradient may be among inputs and outputs.
  virtual Tensors forward(Tensors inputs) = 0;
};

/// A layer that is built only where it is held. The factory's result owns the module.
struct LayerSpec {
  std::string name;  // unique; parameters are named "<name>.<parameter>"
  std::function<torch::nn::AnyModule()> factory;
};

}  // namespace headrace::model
