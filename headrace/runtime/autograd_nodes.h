// The two autograd nodes of our own: where a stage's graph begins, and where each use of a tied
// weight ends. Private to `runtime`; included by .cpp files only.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

namespace headrace::runtime {

/// How LibTorch holds a node: a c10::intrusive_ptr now, a std::shared_ptr in older releases.
using NodePtr = decltype(torch::autograd::Edge::function);

template <typename NodeType, typename... Arguments>
auto make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>) {
    return std::make_shared<NodeType>(std::forward<Arguments>(arguments)...);
  } else {
    return c10::make_intrusive<NodeType>(std::forward<Arguments>(arguments)...);
  }
}

/// Catches the gradients of a stage's inputs. A tensor whose gradient edge leads here is no leaf,
/// so an in-place layer at the start of a stage works as it does inside the net.
struct InputNode : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    captured = std::move(gradients);
    return {};
  }
  std::string name() const override { return "headrace::InputNode"; }

  torch::autograd::variable_list captured;
};

/// Adds up the gradients of one use of a tied weight, over microbatches in the order they come.
struct TieSink : torch::autograd::Node {
  /// Like LibTorch's own accumulators it runs as soon as it can: it has the highest number.
  explicit TieSink(const at::Tensor& parameter) : Node(/*sequence_nr=*/UINT64_MAX) {
    add_input_metadata(parameter);
  }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  std::string name() const override { return "headrace::TieSink"; }

  at::Tensor sum;  // undefined until the first gradient
};

/// A tensor that shares `value`'s storage (and version counter) and whose gradient arrives at
/// `node` as the next of its inputs. `value` must be of a floating or complex type.
at::Tensor bind(const at::Tensor& value, const c10::intrusive_ptr<InputNode>& node);

/// Redirects, in the graph between `outputs` and `inputs`, every edge into the accumulator of
/// `parameter` to `sink`. Returns how many edges that were.
int redirect_uses(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                  const at::Tensor& parameter, const NodePtr& sink);

}  // namespace headrace::runtime
