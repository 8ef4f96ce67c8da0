// The oracle: one process, one thread, plain LibTorch, nothing of headrace. Microbatches are
// accumulated in ascending order, each one's loss sum divided by the weight of the whole batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

namespace headrace::test {

/// The net's output, layer by layer; of an LSTM's tuple the first tensor is handed on (a Sequential
/// cannot do that itself).
at::Tensor oracle_forward(torch::nn::Sequential& net, at::Tensor x);

/// Gradients of the net's parameters are replaced by those of the batch.
/// @param sizes rows of each microbatch.
/// @param ignore_index of the cross entropy over the last dimension.
/// @returns the loss: microbatches' shares added in fp64, ascending.
double oracle_backward(torch::nn::Sequential& net, const at::Tensor& input,
                       const at::Tensor& target, const std::vector<std::int64_t>& sizes,
                       std::int64_t ignore_index = -100);

/// The same for any model: gradients of `parameters` are replaced by the sums over microbatches.
/// @param share the loss sum of rows `first` to `first + rows` over the weight of the whole batch.
double oracle_backward(
    const std::vector<at::Tensor>& parameters, const std::vector<std::int64_t>& sizes,
    const std::function<at::Tensor(std::int64_t first, std::int64_t rows)>& share);

/// One intra-op thread, as the workers have: LibTorch's sums depend on how many there are.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

}  // namespace headrace::test
