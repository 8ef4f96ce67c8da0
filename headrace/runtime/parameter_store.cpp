#include "headrace/runtime/parameter_store.h"

#include <unordered_map>

#include <torch/nn/module.h>

#include "headrace/base/error.h"

namespace headrace::runtime {
namespace {

/// Files `tensor` under its first name; a tensor met again only gains a layer.
template <typename Entry>
void add_use(std::vector<Entry>& entries, std::unordered_map<c10::TensorImpl*, int>& index,
             const std::string& name, const at::Tensor& tensor, int layer) {
  const auto [place, is_new] = index.try_emplace(tensor.unsafeGetTensorImpl(), entries.size());
  if (is_new) entries.push_back({name, tensor, {}});
  std::vector<int>& layers = entries[place->second].layers;
  if (layers.empty() || layers.back() != layer) layers.push_back(layer);
}

template <typename Entry>
std::vector<std::pair<std::string, at::Tensor>> named(const std::vector<Entry>& entries) {
  std::vector<std::pair<std::string, at::Tensor>> result;
  result.reserve(entries.size());
  for (const Entry& entry : entries) result.emplace_back(entry.name, entry.tensor);
  return result;
}

}  // namespace

ParameterStore::ParameterStore(const std::vector<model::NamedLayer>& layers) {
  std::unordered_map<c10::TensorImpl*, int> parameter_index;
  std::unordered_map<c10::TensorImpl*, int> buffer_index;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const std::string prefix = layers[i].name + ".";
    layer_names_.push_back(layers[i].name);
    for (const auto& item : layers[i].module->named_parameters()) {
      if (!item.value().defined()) continue;
      add_use(parameters_, parameter_index, prefix + item.key(), item.value(), i);
    }
    for (const auto& item : layers[i].module->named_buffers()) {
      if (!item.value().defined()) continue;
      add_use(buffers_, buffer_index, prefix + item.key(), item.value(), i);
    }
  }
}

std::vector<std::pair<std::string, at::Tensor>> ParameterStore::named_parameters() const {
  return named(parameters_);
}

std::vector<std::pair<std::string, at::Tensor>> ParameterStore::named_buffers() const {
  return named(buffers_);
}

void ParameterStore::check_shared_buffers(const std::vector<int>& worker_of_layer) const {
  for (const Buffer& buffer : buffers_) {
    for (const int layer : buffer.layers) {
      const int first = buffer.layers.front();
      if (worker_of_layer[layer] == worker_of_layer[first]) continue;
      throw base::ConfigError(
          "a module that stands at two places may be shared by two workers only if it has no "
          "buffers, but buffer '" +
          buffer.name + "' belongs to layer '" + layer_names_[first] + "' on worker " +
          std::to_string(worker_of_layer[first]) + " and to layer '" + layer_names_[layer] +
          "' on worker " + std::to_string(worker_of_layer[layer]) +
          "; give each place a module of its own, or keep both on one worker (layers_per_stage)");
    }
  }
}

}  // namespace headrace::runtime
