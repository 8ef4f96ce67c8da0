// The oracle: one process, one thread, plain LibTorch, nothing of headrace. Microbatches are
// accumulated in ascending order, each one's loss sum divided by the weight of the whole batch.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

namespace headrace::test {

/// Gradients of the net's parameters are replaced by those of the batch.
/// @param sizes rows of each microbatch.
/// @param ignore_index of the cross entropy over the last dimension.
/// @returns the loss: microbatches' shares added in fp64, ascending.
double oracle_backward(torch::nn::Sequential& net, const at::Tensor& input,
                       const at::Tensor& target, const std::vector<std::int64_t>& sizes,
                       std::int64_t ignore_index = -100);

}  // namespace headrace::test
