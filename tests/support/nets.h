// Small nets of stock modules, each with a batch that it can be trained on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

#include "tests/support/bits.h"

namespace headrace::test {

/// A net, freshly initialised from `seed`, and one batch for a cross entropy over its last
/// dimension. The layers are initialised alike at every call.
struct Task {
  torch::nn::Sequential net;
  at::Tensor input;
  at::Tensor target;
};

/// Linear, ReLU in place, LayerNorm, Dropout, ... 10 layers.
Task mlp(std::int64_t rows, std::uint64_t seed = 1);
/// Linear, Tanh, Dropout, LayerNorm, ... 8 layers, none in place: it may be cut anywhere.
Task smooth(std::int64_t rows, double dropout = 0.25, std::uint64_t seed = 1);
/// Embedding, Linear, Tanh, Linear over int64 tokens of any length; 4 layers, no dropout.
Task tokens(std::int64_t rows, std::int64_t length, std::uint64_t seed = 1);
/// Conv2d, BatchNorm2d, ReLU, Dropout, Conv2d, BatchNorm2d, pooling, Linear; 10 layers, none in
/// place.
Task pictures(std::int64_t rows, double dropout = 0.25, std::uint64_t seed = 1);
/// Embedding, LSTM, LayerNorm, Dropout, Linear, ... over int64 tokens; 8 layers.
Task text(std::int64_t rows, std::uint64_t seed = 1);
/// Conv2d, BatchNorm2d, ReLU in place, Dropout, pooling, Linear; 14 layers, three BatchNorms.
Task images(std::int64_t rows, bool channels_last = false, std::uint64_t seed = 1);
/// A two-layer Linear net whose input is a transposed view.
Task transposed(std::int64_t rows, std::uint64_t seed = 1);

/// The task by its name: "mlp", "text", "images", "images_channels_last", "transposed".
Task task(const std::string& name, std::int64_t rows);

/// The parameters (buffers) of a net by name. Tied ones stand under each name.
Named parameters_of(const torch::nn::Sequential& net);
Named buffers_of(const torch::nn::Sequential& net);

}  // namespace headrace::test
