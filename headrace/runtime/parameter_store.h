// Every parameter of the net, once: its name, its tensor and the layers that use it. Nothing else
// in the runtime assumes where a weight lives.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/model/sequence.h"

namespace headrace::runtime {

/// One parameter. More than one layer in `layers` makes it tied: each use then accumulates its
/// gradient on its own, and the uses are added in layer order.
struct Parameter {
  std::string name;         // "<first layer>.<name in the module>"
  at::Tensor tensor;        // a plain leaf
  std::vector<int> layers;  // ascending

  bool tied() const { return layers.size() > 1; }
};

class ParameterStore {
 public:
  explicit ParameterStore(const std::vector<model::NamedLayer>& layers);

  /// In the order of the layers, each tensor once, under its first name.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() const;
  /// Buffers, each tensor once.
  std::vector<std::pair<std::string, at::Tensor>> named_buffers() const;

  /// @throws base::ConfigError if two layers on different workers hold the same buffer (one module
  ///         object at two places): its state would depend on which worker comes first.
  /// @param worker_of_layer one entry per layer.
  void check_shared_buffers(const std::vector<int>& worker_of_layer) const;

 private:
  struct Buffer {
    std::string name;
    at::Tensor tensor;
    std::vector<int> layers;
  };
  std::vector<std::string> layer_names_;
  std::vector<Parameter> parameters_;
  std::vector<Buffer> buffers_;
};

}  // namespace headrace::runtime
