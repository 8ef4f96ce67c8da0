#include "headrace/runtime/autograd_nodes.h"

#include <unordered_set>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace headrace::runtime {

torch::autograd::variable_list TieSink::apply(torch::autograd::variable_list&& gradients) {
  at::Tensor& gradient = gradients.at(0);
  if (!gradient.defined()) return {};
  const at::NoGradGuard no_grad;
  // The engine may hand out a gradient that others still read: the first one is copied.
  if (sum.defined()) {
    sum.add_(gradient);
  } else {
    sum = gradient.detach().clone();
  }
  return {};
}

at::Tensor bind(const at::Tensor& value, const c10::intrusive_ptr<InputNode>& node) {
  at::Tensor bound = value.detach();
  const auto input = node->add_input_metadata(bound);
  torch::autograd::impl::set_gradient_edge(bound, {NodePtr(node), input});
  return bound;
}

int redirect_uses(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                  const at::Tensor& parameter, const NodePtr& sink) {
  std::unordered_set<torch::autograd::Node*> visited;  // starts with the nodes to stop at
  for (const at::Tensor& input : inputs) {
    if (input.defined() && input.grad_fn()) visited.insert(input.grad_fn().get());
  }
  std::vector<torch::autograd::Node*> pending;
  const auto visit = [&](torch::autograd::Node* node) {
    if (node != nullptr && visited.insert(node).second) pending.push_back(node);
  };
  for (const at::Tensor& output : outputs) {
    if (output.defined() && output.grad_fn()) visit(output.grad_fn().get());
  }
  int redirected = 0;
  while (!pending.empty()) {
    torch::autograd::Node* node = pending.back();
    pending.pop_back();
    for (torch::autograd::Edge& edge : node->next_edges()) {
      auto* accumulator = dynamic_cast<torch::autograd::AccumulateGrad*>(edge.function.get());
      if (accumulator == nullptr) {
        visit(edge.function.get());
      } else if (accumulator->variable.is_same(parameter)) {
        edge = torch::autograd::Edge(sink, 0);
        ++redirected;
      }
    }
  }
  return redirected;
}

}  // namespace headrace::runtime
