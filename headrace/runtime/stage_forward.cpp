// The forward half of a stage: calling layers one by one, with or without keeping their graph.
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/autograd/variable.h>

#include "headrace/base/error.h"
#include "headrace/runtime/stage.h"
#include "headrace/runtime/stage_impl.h"

namespace headrace::runtime {
namespace {

using model::LayerGuard;
using model::LayerKey;
using model::StatisticsMode;

const std::string kLossName = "loss";

/// The inputs of a layer, bound to `node` where a gradient is wanted.
std::vector<at::Tensor> bind_inputs(const Packet& packet, at::Device device,
                                    const c10::intrusive_ptr<InputNode>& node,
                                    std::vector<int>* node_input) {
  std::vector<at::Tensor> bound;
  for (std::size_t i = 0; i < packet.values.size(); ++i) {
    at::Tensor value = packet.values[i].to(device);
    if (packet.needs_grad[i]) {
      if (node_input != nullptr) node_input->push_back(static_cast<int>(node->num_inputs()));
      value = bind(value, node);
    } else if (node_input != nullptr) {
      node_input->push_back(-1);
    }
    bound.push_back(std::move(value));
  }
  return bound;
}

/// What crosses a boundary: the values without their graph.
Packet detach(const std::vector<at::Tensor>& values) {
  Packet packet;
  for (const at::Tensor& value : values) {
    packet.needs_grad.push_back(value.requires_grad());
    packet.values.push_back(value.requires_grad() ? value.detach() : value);
  }
  return packet;
}

/// A value that a layer returns twice gets one view each, so that the gradients of its two
/// consumers are added in the same order whether or not a stage ends here.
void separate_duplicates(std::vector<at::Tensor>& outputs) {
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (outputs[i].requires_grad() && outputs[i].is_same(outputs[j])) {
        outputs[i] = outputs[i].view_as(outputs[i]);
        break;
      }
    }
  }
}

void check_inputs_untouched(const LiveMicrobatch& live, const std::string& layer, int stage) {
  for (std::size_t i = 0; i < live.versions.size(); ++i) {
    const at::Tensor& value = live.input.values[i];
    if (value._version() == live.versions[i]) continue;
    throw base::ConfigError(
        "layer '" + layer + "' changes input " + std::to_string(i) + " of stage " +
        std::to_string(stage) +
        " in place; recomputing the stage would change it twice. Make the layer out of place, turn "
        "rematerialisation off, or cut the net elsewhere (layers_per_stage) so that no stage "
        "begins "
        "with it");
  }
}

/// The versions of all buffers of a layer that nothing but its forward could change.
std::vector<std::int64_t> buffer_versions(const StageLayer& layer) {
  std::vector<std::int64_t> versions;
  for (const auto& [name, buffer] : layer.watched_buffers) versions.push_back(buffer._version());
  return versions;
}

void check_buffers_untouched(const StageLayer& layer, const std::vector<std::int64_t>& before) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (layer.watched_buffers[i].second._version() == before[i]) continue;
    throw base::ConfigError("the forward of layer '" + layer.layer.name + "' changes its buffer '" +
                            layer.watched_buffers[i].first +
                            "'; recomputing would change it twice. Turn rematerialisation off for "
                            "this net (BatchNorm's running statistics are the one exception)");
  }
}

/// One pass over the layers of a stage.
class Pass {
 public:
  Pass(Step& step, int microbatch, const Stage::Place& place,
       std::atomic<const std::string*>& current_layer)
      : step_(step), microbatch_(microbatch), place_(place), current_layer_(current_layer) {}

  std::vector<at::Tensor> call(StageLayer& layer, std::vector<at::Tensor> inputs,
                               StatisticsMode mode) {
    current_layer_.store(&layer.layer.name, std::memory_order_relaxed);
    const LayerGuard guard(key(layer.id), layer.statistics.get(), mode);
    return layer.layer.call(std::move(inputs));
  }

  /// The microbatch's share of the loss: its sum over W.
  at::Tensor loss(const std::vector<at::Tensor>& outputs) {
    current_layer_.store(&kLossName, std::memory_order_relaxed);
    static const std::uint64_t id = model::layer_id(kLossName);
    const LayerGuard guard(key(id), nullptr, StatisticsMode::kDiscard);
    at::Tensor sum = step_.loss.sum(outputs, step_.targets.at(microbatch_).to(place_.device));
    if (!sum.defined() || sum.dim() != 0 || !at::isFloatingType(sum.scalar_type())) {
      throw base::ConfigError("a loss's sum must be a floating scalar (0 dimensions), not " +
                              (sum.defined() ? std::to_string(sum.dim()) + "-dimensional " +
                                                   std::string(sum.dtype().name())
                                             : std::string("undefined")));
    }
    return sum / step_.total_weight;
  }

 private:
  LayerKey key(std::uint64_t layer) const {
    return {step_.seed, step_.key_step, step_.first_microbatch + microbatch_, layer};
  }

  Step& step_;
  const int microbatch_;
  const Stage::Place& place_;
  std::atomic<const std::string*>& current_layer_;
};

/// Runs the layers with their graph and leaves its roots in `live`. Returns the outputs.
std::vector<at::Tensor> run_with_graph(Pass& pass, std::vector<StageLayer>& layers,
                                       const Packet& input, at::Device device, LiveMicrobatch& live,
                                       StatisticsMode mode) {
  live.node = make_node<InputNode>();
  live.node_input.clear();
  std::vector<at::Tensor> values = bind_inputs(input, device, live.node, &live.node_input);
  for (StageLayer& layer : layers) {
    std::vector<at::Tensor> outputs;
    if (layer.tied.empty()) {
      outputs = pass.call(layer, std::move(values), mode);
    } else {
      outputs = pass.call(layer, values, mode);
      for (const TiedUse* use : layer.tied) {
        redirect_uses(outputs, values, use->tensor, NodePtr(use->sink));
      }
    }
    separate_duplicates(outputs);
    values = std::move(outputs);
  }
  return values;
}

/// Runs the layers in grad mode (some modules take another kernel without), dropping each layer's
/// graph as the next one starts.
std::vector<at::Tensor> run_without_graph(Pass& pass, std::vector<StageLayer>& layers,
                                          at::Device device, const LiveMicrobatch& live,
                                          int stage) {
  Packet packet = live.input;
  std::vector<at::Tensor> outputs;
  for (StageLayer& layer : layers) {
    std::vector<at::Tensor> values = bind_inputs(packet, device, make_node<InputNode>(), nullptr);
    packet = {};
    const std::vector<std::int64_t> before = buffer_versions(layer);
    outputs = pass.call(layer, std::move(values), StatisticsMode::kRecord);
    check_inputs_untouched(live, layer.layer.name, stage);
    check_buffers_untouched(layer, before);
    separate_duplicates(outputs);
    packet = detach(outputs);
  }
  return outputs;
}

torch::autograd::Edge root_of(const at::Tensor& value) {
  return value.requires_grad() ? torch::autograd::impl::gradient_edge(value)
                               : torch::autograd::Edge();
}

/// Only the edges are kept: the values themselves go to the next stage.
void keep_output_roots(LiveMicrobatch& live, const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs) live.roots.push_back(root_of(output));
}

void keep_loss_root(LiveMicrobatch& live, const at::Tensor& loss) {
  live.roots.push_back(root_of(loss));
}

}  // namespace

Packet Stage::forward(Step& step, int microbatch, Packet input, Keep keep) {
  const c10::OptionalDeviceGuard device(place_.device);
  Pass pass(step, microbatch, place_, current_layer_);
  std::vector<at::Tensor> outputs;
  if (keep == Keep::kNothing) {
    const at::NoGradGuard no_grad;
    for (at::Tensor& value : input.values) value = value.to(place_.device);
    outputs = std::move(input.values);
    for (StageLayer& layer : impl_->layers) {
      outputs = pass.call(layer, std::move(outputs), StatisticsMode::kDiscard);
    }
  } else {
    const at::AutoGradMode grad(true);
    LiveMicrobatch& live = impl_->live_at(microbatch);
    if (keep == Keep::kInputs) {
      live.input = std::move(input);
      for (const at::Tensor& value : live.input.values) {
        live.versions.push_back(value._version());
      }
      outputs = run_without_graph(pass, impl_->layers, place_.device, live, place_.index);
    } else {
      outputs =
          run_with_graph(pass, impl_->layers, input, place_.device, live, StatisticsMode::kRecord);
      input = {};
      if (!place_.last) keep_output_roots(live, outputs);
    }
  }
  if (!place_.last) return detach(outputs);
  if (step.keep_outputs) step.outputs.at(microbatch) = detach(outputs).values;
  if (step.training) {
    const at::AutoGradMode grad(true);
    const at::Tensor loss = pass.loss(outputs);
    step.losses.at(microbatch) = loss.detach();
    if (keep == Keep::kGraph) keep_loss_root(impl_->live_at(microbatch), loss);
  }
  return {};
}

void Stage::recompute(Step& step, int microbatch) {
  const c10::OptionalDeviceGuard device(place_.device);
  const at::AutoGradMode grad(true);
  Pass pass(step, microbatch, place_, current_layer_);
  LiveMicrobatch& live = impl_->live_at(microbatch);
  const std::vector<at::Tensor> outputs =
      run_with_graph(pass, impl_->layers, std::exchange(live.input, {}), place_.device, live,
                     StatisticsMode::kDiscard);
  if (place_.last) {
    keep_loss_root(live, pass.loss(outputs));
  } else {
    keep_output_roots(live, outputs);
  }
}

}  // namespace headrace::runtime
