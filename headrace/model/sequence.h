// A net as the runtime sees it: an ordered list of named layers, each callable with a list of
// tensors, whatever kind of module stands behind it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
class Sequential;
}  // namespace torch::nn

namespace headrace::model {

struct LayerSpec;
using Tensors = std::vector<at::Tensor>;

/// One layer, ready to be called. Copies share the module.
struct NamedLayer {
  std::string name;  // the child name in the Sequential, or the spec's
  std::shared_ptr<torch::nn::Module> module;
  std::function<Tensors(Tensors)> call;
};

/// The layers of a torch::nn::Sequential, taken as it is (modules shared, nothing copied or
/// re-initialised). A stock module takes 1 to 4 tensors, as many as its forward has arguments; of a
/// tuple that it returns (LSTM, GRU, MultiheadAttention) the first tensor is handed on. LibTorch
/// does not compile a Sequential directly inside a Sequential (its forward is a template): wrap the
/// inner one in a module with a forward of its own.
/// @throws base::ConfigError for an empty net; from `call`, naming the layer, for a number of
/// inputs that its forward does not take, and for a result that is no tensor, undefined or an empty
/// list.
std::vector<NamedLayer> layers_of(const torch::nn::Sequential& net);

/// Builds each layer by its factory.
/// @throws base::ConfigError for an empty list, a name given twice, or a factory that gives
/// nothing.
std::vector<NamedLayer> build_layers(const std::vector<LayerSpec>& specs);

}  // namespace headrace::model
