#include "headrace/model/sequence.h"

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include "headrace/base/error.h"
#include "headrace/model/layer.h"

namespace headrace::model {
namespace {

using torch::nn::AnyModule;
using torch::nn::AnyValue;

constexpr std::size_t kMaxStockInputs = 4;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw base::ConfigError(where + " " + what);
}

std::string named(const std::string& name, const torch::nn::Module& module) {
  return "layer '" + name + "' (" + module.name() + ")";
}

AnyValue forward(AnyModule& module, Tensors inputs) {
  switch (inputs.size()) {
    case 1:
      return module.any_forward(std::move(inputs[0]));
    case 2:
      return module.any_forward(std::move(inputs[0]), std::move(inputs[1]));
    case 3:
      return module.any_forward(std::move(inputs[0]), std::move(inputs[1]), std::move(inputs[2]));
    default:
      return module.any_forward(std::move(inputs[0]), std::move(inputs[1]), std::move(inputs[2]),
                                std::move(inputs[3]));
  }
}

// LibTorch's own words for arguments that do not fit, from any_module_holder.h.
bool is_argument_mismatch(const std::string& message) {
  return message.find("'s forward() method expects") != std::string::npos ||
         message.rfind("Expected argument #", 0) == 0;
}

AnyValue call_stock(AnyModule& module, const std::string& where, Tensors inputs) {
  const std::size_t num_inputs = inputs.size();
  const std::string given =
      "is given " + std::to_string(num_inputs) + (num_inputs == 1 ? " tensor" : " tensors");
  if (num_inputs == 0 || num_inputs > kMaxStockInputs) {
    refuse(where, given + "; a stock module takes 1 to " + std::to_string(kMaxStockInputs) +
                      ", a headrace::Layer any number");
  }
  try {
    return forward(module, std::move(inputs));
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (!is_argument_mismatch(message)) {
      throw;
    }
    refuse(where, given +
                      " by the layer before it (or by the net's input), which its forward() "
                      "does not take: " +
                      message);
  }
}

Tensors tensors_of(AnyValue value, const std::string& where) {
  using Pair = std::tuple<at::Tensor, at::Tensor>;
  using LstmResult = std::tuple<at::Tensor, Pair>;
  if (auto* tensor = value.try_get<at::Tensor>()) {
    return {std::move(*tensor)};
  }
  if (auto* list = value.try_get<Tensors>()) {
    return std::move(*list);
  }
  if (auto* pair = value.try_get<Pair>()) {
    return {std::move(std::get<0>(*pair))};
  }
  if (auto* result = value.try_get<LstmResult>()) {
    return {std::move(std::get<0>(*result))};
  }
  refuse(where, "returned a value of type " + c10::demangle(value.type_info().name()) +
                    "; a layer returns a tensor, a std::vector of tensors, or a pair whose first "
                    "tensor is handed on; wrap it in a headrace::Layer");
}

Tensors checked(Tensors outputs, const std::string& where) {
  if (outputs.empty()) {
    refuse(where, "returned an empty list; a layer returns at least one tensor");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) {
      refuse(where, "returned an undefined tensor at place " + std::to_string(i) + " of " +
                        std::to_string(outputs.size()) + "; every output must hold a value");
    }
  }
  return outputs;
}

NamedLayer name_layer(std::string name, const AnyModule& any) {
  NamedLayer result{std::move(name), any.ptr(), {}};
  const std::string where = named(result.name, *result.module);
  if (auto layer = std::dynamic_pointer_cast<Layer>(result.module)) {
    result.call = [layer, where](Tensors inputs) {
      return checked(layer->forward(std::move(inputs)), where);
    };
    return result;
  }
  // Copies of an AnyModule share the module; std::function needs the copy to be callable as const.
  result.call = [module = std::make_shared<AnyModule>(any), where](Tensors inputs) {
    return checked(tensors_of(call_stock(*module, where, std::move(inputs)), where), where);
  };
  return result;
}

}  // namespace

std::vector<NamedLayer> layers_of(const torch::nn::Sequential& net) {
  if (net.is_empty() || net->is_empty()) {
    throw base::ConfigError("the net has no layers; give a Sequential with at least one module");
  }
  const std::vector<std::string> names = net->named_children().keys();
  HEADRACE_INVARIANT(names.size() == net->size());
  std::vector<NamedLayer> layers;
  layers.reserve(names.size());
  for (const AnyModule& module : *net) {
    layers.push_back(name_layer(names[layers.size()], module));
  }
  return layers;
}

std::vector<NamedLayer> build_layers(const std::vector<LayerSpec>& specs) {
  if (specs.empty()) {
    throw base::ConfigError("the net has no layers; give at least one LayerSpec");
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string where = "LayerSpec " + std::to_string(i) + " ('" + specs[i].name + "')";
    if (specs[i].name.empty()) {
      refuse(where, "has no name; parameters are named after it");
    }
    if (!names.insert(specs[i].name).second) {
      refuse(where, "has a name that an earlier layer has; every layer needs its own");
    }
    if (!specs[i].factory) {
      refuse(where, "has no factory");
    }
  }
  std::vector<NamedLayer> layers;
  layers.reserve(specs.size());
  for (const LayerSpec& spec : specs) {
    const AnyModule module = spec.factory();
    if (module.is_empty()) {
      refuse("the factory of layer '" + spec.name + "'", "gave an empty module");
    }
    layers.push_back(name_layer(spec.name, module));
  }
  return layers;
}

}  // namespace headrace::model
