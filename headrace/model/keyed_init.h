// Initial weights that depend on (seed, parameter name) only: not on the order in which layers are
// built, on which worker builds them, or on the global generator, which does not move.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace headrace::model {

/// Fills `tensor` from U(-bound, bound). Values are drawn on the CPU in fp32 (fp64 for an fp64
/// tensor) in the order of a contiguous tensor, then converted and moved: the same on any device
/// and with any strides. A meta tensor stays as it is. Not recorded by autograd.
/// @throws base::ConfigError for a tensor that is undefined or not floating, or a bound that is
/// negative or not finite; the message names the parameter.
/// Cost: the tensor's elements, and a temporary copy unless it is a contiguous fp32 CPU tensor.
void keyed_uniform_(const at::Tensor& tensor, std::uint64_t seed, std::string_view name,
                    double bound);

/// Fills `tensor` from N(0, std^2). Otherwise as keyed_uniform_.
void keyed_normal_(const at::Tensor& tensor, std::uint64_t seed, std::string_view name, double std);

/// Fills a weight [out, in, kernel...] from U(-a, a), a = gain sqrt(6 / (fan_in + fan_out)) (Glorot
/// and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010).
/// @throws base::ConfigError also for fewer than two dimensions.
void keyed_xavier_uniform_(const at::Tensor& tensor, std::uint64_t seed, std::string_view name,
                           double gain = 1.0);

}  // namespace headrace::model
