// The gradient norm that is the same in every layout: squares summed in fp64 over fixed logical
// chunks of 4,096 elements, then over chunks, then over parameters, each in one fixed order.
#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headrace::optim {

inline constexpr int kNormChunk = 4096;

/// Sum of squares of each chunk of kNormChunk elements, in logical (row-major) order whatever the
/// strides; the last chunk may be short. Empty for an undefined or empty tensor. fp32, fp64, fp16,
/// bf16; any device. The chunks of shards that are cut on chunk edges, laid end to end, are the
/// chunks of the whole to the bit (on one kind of device).
/// Cost: one pass; a copy if the tensor is not contiguous; off the CPU, and for the half types,
/// 16 MiB beside it, and one transfer of the sums.
/// @throws base::ConfigError for a sparse gradient or another dtype.
std::vector<double> chunk_squares(const at::Tensor& gradient);

/// Sum of squares of all elements: the left fold of chunk_squares(). Not finite if an element is
/// not; an fp64 element above 1e154 overflows too.
double squared_norm(const at::Tensor& gradient);

/// sqrt of the left fold of `squares`.
double global_norm(std::span<const double> squares);

/// What gradients are multiplied by so that their norm is at most `max_norm`:
/// min(1, max_norm / (norm + 1e-6)), as torch::nn::utils::clip_grad_norm_ has it. A norm that is
/// NaN gives NaN.
double clip_scale(double norm, double max_norm);

}  // namespace headrace::optim
