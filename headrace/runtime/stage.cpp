#include "headrace/runtime/stage.h"

#include <utility>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "headrace/base/error.h"
#include "headrace/runtime/stage_impl.h"

namespace headrace::runtime {

LiveMicrobatch& Stage::Impl::live_at(int microbatch) {
  std::optional<LiveMicrobatch>& entry = live.at(microbatch);
  if (!entry) entry.emplace();
  return *entry;
}

Stage::Stage(Place place, std::vector<model::NamedLayer> layers, const ParameterStore& parameters,
             const optim::OptimizerFactory& optimizer)
    : place_(place),
      account_(std::make_shared<memory::Account>()),
      impl_(std::make_unique<Impl>()) {
  const int end_layer = place.first_layer + static_cast<int>(layers.size());
  for (model::NamedLayer& layer : layers) {
    if (!place.device.is_cpu()) layer.module->to(place.device);
    StageLayer entry;
    entry.id = model::layer_id(layer.name);
    entry.statistics = std::make_unique<model::BatchNormStatistics>(layer.module);
    entry.watched_buffers = model::buffers_not_intercepted(*layer.module);
    entry.layer = layer;
    impl_->layers.push_back(std::move(entry));
  }
  impl_->named_layers = std::move(layers);

  std::vector<at::Tensor> trained;
  const auto& all = parameters.parameters();
  for (int p = 0; p < static_cast<int>(all.size()); ++p) {
    const int first = all[p].layers.front();
    if (first >= place.first_layer && first < end_layer) {
      owned_.push_back(p);
      impl_->owned.emplace_back(p, all[p].tensor);
      if (all[p].tensor.requires_grad()) trained.push_back(all[p].tensor);
    }
    if (!all[p].tied()) continue;
    for (const int layer : all[p].layers) {
      if (layer < place.first_layer || layer >= end_layer) continue;
      auto use = std::make_unique<TiedUse>();
      *use = {p, layer, all[p].tensor, make_node<TieSink>(all[p].tensor), {}};
      if (all[p].tensor.requires_grad()) {
        use->accumulator = torch::autograd::impl::grad_accumulator(all[p].tensor);
      }
      impl_->layers[layer - place.first_layer].tied.push_back(use.get());
      impl_->tied_uses.push_back(std::move(use));
    }
  }
  if (optimizer && !trained.empty()) {
    impl_->optimizer = optimizer(trained);
    if (!impl_->optimizer) {
      throw base::ConfigError("the optimizer factory returned nothing for the " +
                              std::to_string(trained.size()) + " parameters of stage " +
                              std::to_string(place.index));
    }
  }
}

Stage::~Stage() = default;

void Stage::open(const Step& step) {
  impl_->live.clear();
  impl_->live.resize(step.program->num_microbatches);
  for (StageLayer& layer : impl_->layers) layer.statistics->begin(step.program->num_microbatches);
}

void Stage::clear() {
  impl_->live.clear();
}

void Stage::zero_grad() {
  for (auto& [index, tensor] : impl_->owned) tensor.mutable_grad().reset();
  for (auto& use : impl_->tied_uses) use->sink->sum.reset();
}

Packet Stage::backward(Step& step, int microbatch, Packet gradients) {
  const c10::OptionalDeviceGuard device(place_.device);
  LiveMicrobatch live = std::move(impl_->live_at(microbatch));
  impl_->live.at(microbatch).reset();
  HEADRACE_INVARIANT(live.node);

  torch::autograd::edge_list roots;
  torch::autograd::variable_list root_gradients;
  for (std::size_t i = 0; i < live.roots.size(); ++i) {
    if (!live.roots[i].is_valid()) continue;
    const at::Tensor gradient =
        place_.last ? at::ones_like(step.losses.at(microbatch)) : gradients.values.at(i);
    if (!gradient.defined()) continue;
    roots.push_back(std::move(live.roots[i]));
    root_gradients.push_back(gradient.to(place_.device));
  }
  live.roots.clear();
  gradients = {};
  if (!roots.empty()) {
    torch::autograd::Engine::get_default_engine().execute(
        roots, root_gradients, /*keep_graph=*/false, /*create_graph=*/false,
        /*accumulate_grad=*/true);
  }
  Packet result;
  for (const int input : live.node_input) {
    const bool caught = input >= 0 && !live.node->captured.empty();
    result.values.push_back(caught ? std::move(live.node->captured.at(input)) : at::Tensor());
  }
  return result;
}

const at::Tensor& Stage::tied_gradient(int parameter, int layer) const {
  for (const auto& use : impl_->tied_uses) {
    if (use->parameter == parameter && use->layer == layer) return use->sink->sum;
  }
  HEADRACE_INVARIANT(false && "a use that this stage does not hold");
}

const std::vector<model::NamedLayer>& Stage::layers() const {
  return impl_->named_layers;
}

}  // namespace headrace::runtime
