// The gradient norm that is the same in every layout: squares summed in fp64 over fixed logical
// chunks of 4,096 elements, then over chunks, then over parameters, each in one fixed order.
#pragma once

#include <span>

#include <ATen/core/Tensor.h>

namespace headrace::optim {

inline constexpr int kNormChunk = 4096;

/// Sum of squares of all elements in logical (row-major) order, whatever the strides. 0 for an
/// undefined tensor. Not finite if an element is not. fp32, fp64, fp16, bf16; any device.
double squared_norm(const at::Tensor& gradient);

/// sqrt of the left fold of `squares`.
double global_norm(std::span<const double> squares);

/// What gradients are multiplied by so that their norm is at most `max_norm`:
/// min(1, max_norm / (norm + 1e-6)), as torch::nn::utils::clip_grad_norm_ has it.
double clip_scale(double norm, double max_norm);

}  // namespace headrace::optim
