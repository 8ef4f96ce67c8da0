#include "headrace/runtime/measure.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <unordered_set>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include "headrace/base/error.h"
#include "headrace/memory/allocator.h"
#include "headrace/model/layer_guard.h"
#include "headrace/runtime/autograd_nodes.h"
#include "headrace/runtime/channel.h"

namespace headrace::runtime {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Puts back the buffers of a module that its forward changed.
class BufferGuard {
 public:
  explicit BufferGuard(const torch::nn::Module& module) {
    for (const at::Tensor& buffer : module.buffers()) {
      if (buffer.defined()) saved_.push_back({buffer, buffer.clone(), buffer._version()});
    }
  }
  ~BufferGuard() {
    const at::NoGradGuard no_grad;
    for (Saved& saved : saved_) {
      if (saved.buffer._version() != saved.version) saved.buffer.copy_(saved.value);
    }
  }

 private:
  struct Saved {
    at::Tensor buffer;
    at::Tensor value;
    std::int64_t version;
  };
  std::vector<Saved> saved_;
};

/// One layer with the values it is measured on.
class LayerRun {
 public:
  LayerRun(const model::NamedLayer& layer, const Packet& input, std::uint64_t seed)
      : layer_(layer), input_(input), statistics_(layer.module) {
    key_ = {seed, std::numeric_limits<std::uint64_t>::max(), 0, model::layer_id(layer.name)};
    for (const at::Tensor& parameter : layer.module->parameters()) {
      if (parameter.requires_grad()) {
        weights_.emplace_back(NodePtr(torch::autograd::impl::grad_accumulator(parameter)), 0);
      }
    }
    statistics_.begin(2);
  }

  /// One forward on fresh copies of the input (a layer may change it in place). Returns seconds.
  double forward() {
    prepare();
    return call();
  }

  /// What one forward allocates and only its graph keeps alive.
  std::int64_t activation_bytes() {
    prepare();
    const auto account = std::make_shared<memory::Account>();
    const memory::AccountGuard guard(account);
    call();
    edge_list graph;
    for (const at::Tensor& output : outputs) graph.push_back(root_of(output));
    outputs.clear();
    return account->live_bytes();
  }

  /// {input-gradient seconds, full backward seconds} of the graph of the last forward.
  std::pair<double, double> backward() {
    edge_list roots;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& output : outputs) {
      if (!output.requires_grad()) continue;
      roots.push_back(root_of(output));
      gradients.push_back(at::ones_like(output));
    }
    if (roots.empty()) return {0, 0};
    edge_list wanted;
    for (std::uint32_t i = 0; i < node_->num_inputs(); ++i) wanted.emplace_back(NodePtr(node_), i);
    auto& engine = torch::autograd::Engine::get_default_engine();
    double input_seconds = 0;
    if (!wanted.empty()) {
      const Clock::time_point start = Clock::now();
      engine.execute(roots, gradients, /*keep_graph=*/true, false, false, wanted);
      input_seconds = seconds_since(start);
    }
    wanted.insert(wanted.end(), weights_.begin(), weights_.end());
    if (wanted.empty()) return {0, 0};
    const Clock::time_point start = Clock::now();
    engine.execute(roots, gradients, /*keep_graph=*/false, false, false, wanted);
    return {input_seconds, seconds_since(start)};
  }

  std::vector<at::Tensor> outputs;

 private:
  void prepare() {
    node_ = make_node<InputNode>();
    values_.clear();
    for (std::size_t i = 0; i < input_.values.size(); ++i) {
      const at::Tensor copy = input_.values[i].clone();
      values_.push_back(input_.needs_grad[i] ? bind(copy, node_) : copy);
    }
  }

  double call() {
    const model::LayerGuard guard(key_, &statistics_, model::StatisticsMode::kDiscard);
    const Clock::time_point start = Clock::now();
    outputs = layer_.call(std::move(values_));
    return seconds_since(start);
  }

  static Edge root_of(const at::Tensor& output) {
    return output.requires_grad() ? torch::autograd::impl::gradient_edge(output) : Edge();
  }

  const model::NamedLayer& layer_;
  const Packet& input_;
  model::BatchNormStatistics statistics_;
  model::LayerKey key_;
  c10::intrusive_ptr<InputNode> node_;
  std::vector<at::Tensor> values_;
  edge_list weights_;
};

Packet without_graph(const std::vector<at::Tensor>& values) {
  Packet packet;
  for (const at::Tensor& value : values) {
    packet.needs_grad.push_back(value.requires_grad());
    packet.values.push_back(value.detach());
  }
  return packet;
}

/// A tensor that two layers share counts where it stands first, as in a parameter list.
std::int64_t new_parameter_bytes(const torch::nn::Module& module,
                                 std::unordered_set<c10::TensorImpl*>& seen) {
  std::int64_t bytes = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    if (seen.insert(parameter.unsafeGetTensorImpl()).second) bytes += parameter.nbytes();
  }
  return bytes;
}

double median(std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// Times `run` and fills `profile`; leaves the outputs of the last forward in `run`.
void time_layer(LayerRun& run, const MeasureOptions& options, plan::LayerProfile& profile) {
  run.forward();  // warms caches and code; not counted
  run.backward();
  std::vector<double> forward;
  std::vector<double> input_gradient;
  std::vector<double> full_backward;
  const Clock::time_point start = Clock::now();
  do {
    forward.push_back(run.forward());
    const auto [input_seconds, full_seconds] = run.backward();
    input_gradient.push_back(input_seconds);
    full_backward.push_back(full_seconds);
  } while (std::ssize(forward) < options.repetitions &&
           seconds_since(start) <= options.enough_seconds);
  profile.forward_seconds = median(forward);
  profile.input_gradient_seconds = median(input_gradient);
  profile.weight_gradient_seconds =
      std::max(0.0, median(full_backward) - profile.input_gradient_seconds);
}

std::string failure_of(const model::NamedLayer& layer) {
  return "layer '" + layer.name + "' fails on the microbatch that it is measured on: ";
}

}  // namespace

std::vector<plan::LayerProfile> measure_layers(const std::vector<model::NamedLayer>& layers,
                                               const std::vector<at::Tensor>& microbatch,
                                               const MeasureOptions& options) {
  const at::AutoGradMode grad(true);
  std::vector<plan::LayerProfile> profiles;
  std::unordered_set<c10::TensorImpl*> seen;
  Packet input = without_graph(microbatch);
  input.needs_grad.assign(input.values.size(), false);
  for (const model::NamedLayer& layer : layers) {
    if (options.current_layer != nullptr) {
      *options.current_layer = static_cast<int>(&layer - layers.data());
    }
    try {
      const BufferGuard buffers(*layer.module);
      plan::LayerProfile profile;
      profile.name = layer.name;
      profile.parameter_bytes = new_parameter_bytes(*layer.module, seen);
      LayerRun run(layer, input, options.seed);
      profile.activation_bytes = run.activation_bytes();
      time_layer(run, options, profile);
      run.forward();
      for (const at::Tensor& output : run.outputs) profile.output_bytes += output.nbytes();
      input = without_graph(run.outputs);
      profiles.push_back(std::move(profile));
    } catch (const base::Error&) {
      throw;  // one of ours names the layer itself
    } catch (const c10::Error& e) {
      throw base::ConfigError(failure_of(layer) + e.what_without_backtrace());
    } catch (const std::exception& e) {
      std::throw_with_nested(base::Error(failure_of(layer) + e.what()));
    } catch (...) {
      std::throw_with_nested(
          base::Error(failure_of(layer) + "an exception that is not a std::exception"));
    }
  }
  return profiles;
}

}  // namespace headrace::runtime
