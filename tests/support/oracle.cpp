#include "tests/support/oracle.h"

#include <ATen/ATen.h>

namespace headrace::test {

double oracle_backward(torch::nn::Sequential& net, const at::Tensor& input,
                       const at::Tensor& target, const std::vector<std::int64_t>& sizes,
                       std::int64_t ignore_index) {
  for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
  const double weight = target.ne(ignore_index).sum().item<double>();
  double loss = 0;
  std::int64_t first = 0;
  for (const std::int64_t rows : sizes) {
    const at::Tensor output = net->forward(input.narrow(0, first, rows));
    const at::Tensor labels = target.narrow(0, first, rows);
    const at::Tensor sum = at::cross_entropy_loss(output.flatten(0, -2), labels.flatten(), {},
                                                  at::Reduction::Sum, ignore_index);
    const at::Tensor share = sum / weight;
    share.backward();
    loss += share.item<double>();
    first += rows;
  }
  return loss;
}

}  // namespace headrace::test
