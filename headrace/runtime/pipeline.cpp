#include "headrace/runtime/pipeline.h"

#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>

#include "headrace/base/error.h"
#include "headrace/model/layer.h"
#include "headrace/runtime/pipeline_impl.h"

namespace headrace::runtime {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<std::pair<std::string, at::Tensor>>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

}  // namespace

Pipeline::Pipeline(const torch::nn::Sequential& net, PipelineOptions options)
    : impl_(std::make_unique<Impl>(model::layers_of(net), std::move(options))) {}

Pipeline::Pipeline(const std::vector<model::LayerSpec>& layers, PipelineOptions options)
    : impl_(std::make_unique<Impl>(model::build_layers(layers), std::move(options))) {}

Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

std::vector<at::Tensor> Pipeline::parameters() const {
  return tensors_of(named_parameters());
}

std::vector<std::pair<std::string, at::Tensor>> Pipeline::named_parameters() const {
  return impl_->parameters().named_parameters();
}

std::vector<std::pair<std::string, at::Tensor>> Pipeline::named_buffers() const {
  return impl_->parameters().named_buffers();
}

StepResult Pipeline::step(const Tensors& inputs, const at::Tensor& target, const Loss& loss,
                          const StepOptions& options) {
  return impl_->step(inputs, target, loss, options);
}

StepResult Pipeline::step(const at::Tensor& input, const at::Tensor& target, const Loss& loss,
                          const StepOptions& options) {
  return impl_->step({input}, target, loss, options);
}

Tensors Pipeline::forward(const Tensors& inputs) {
  return impl_->forward(inputs);
}

at::Tensor Pipeline::forward(const at::Tensor& input) {
  Tensors outputs = impl_->forward({input});
  if (outputs.size() != 1) {
    throw base::ConfigError("the last layer returns " + std::to_string(outputs.size()) +
                            " tensors: call forward with a list of tensors to get them all");
  }
  return outputs[0];
}

const std::vector<model::NamedLayer>& Pipeline::layers() const {
  return impl_->layers();
}
const std::optional<plan::Cut>& Pipeline::cut() const {
  return impl_->cut();
}
const std::optional<plan::Profile>& Pipeline::profile() const {
  return impl_->profile();
}
std::vector<StageMemory> Pipeline::memory() const {
  return impl_->memory();
}
void Pipeline::reset_peak() {
  impl_->reset_peak();
}
PipelineState Pipeline::state() const {
  return impl_->state();
}
void Pipeline::load_state(const PipelineState& state) {
  impl_->load_state(state);
}

}  // namespace headrace::runtime
