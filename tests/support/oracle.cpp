#include "tests/support/oracle.h"

#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/modules/rnn.h>

namespace headrace::test {

OneThread::OneThread() : before_(at::get_num_threads()) {
  at::set_num_threads(1);
}
OneThread::~OneThread() {
  at::set_num_threads(before_);
}

at::Tensor oracle_forward(torch::nn::Sequential& net, at::Tensor x) {
  for (torch::nn::AnyModule& layer : *net) {
    if (auto* lstm = layer.ptr()->as<torch::nn::LSTM>()) {
      x = std::get<0>(lstm->forward(x));
    } else {
      x = layer.forward(x);
    }
  }
  return x;
}

double oracle_backward(
    const std::vector<at::Tensor>& parameters, const std::vector<std::int64_t>& sizes,
    const std::function<at::Tensor(std::int64_t first, std::int64_t rows)>& share) {
  const OneThread one_thread;
  for (const at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
  double loss = 0;
  std::int64_t first = 0;
  for (const std::int64_t rows : sizes) {
    const at::Tensor part = share(first, rows);
    if (part.requires_grad()) part.backward();
    loss += part.item<double>();
    first += rows;
  }
  return loss;
}

double oracle_backward(torch::nn::Sequential& net, const at::Tensor& input,
                       const at::Tensor& target, const std::vector<std::int64_t>& sizes,
                       std::int64_t ignore_index) {
  const double weight = target.ne(ignore_index).sum().item<double>();
  return oracle_backward(
      net->parameters(), sizes, [&](std::int64_t first, std::int64_t rows) -> at::Tensor {
        const at::Tensor output = oracle_forward(net, input.narrow(0, first, rows));
        const at::Tensor labels = target.narrow(0, first, rows);
        return at::cross_entropy_loss(output.flatten(0, -2), labels.flatten(), {},
                                      at::Reduction::Sum, ignore_index) /
               weight;
      });
}

}  // namespace headrace::test
