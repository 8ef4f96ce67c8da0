// The net of the speed benches: equal blocks, x + Linear(GELU(Linear(LayerNorm(x)))), each one
// layer, so that it is cut into stages of equal cost.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

namespace headrace::bench {

/// [rows, width] -> [rows, width], through `hidden`.
class Block : public torch::nn::Module {
 public:
  Block(std::int64_t width, std::int64_t hidden)
      : norm_(register_module(
            "norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions(std::vector{width})))),
        up_(register_module("up", torch::nn::Linear(width, hidden))),
        down_(register_module("down", torch::nn::Linear(hidden, width))) {}

  at::Tensor forward(const at::Tensor& x) {
    return x + down_->forward(at::gelu(up_->forward(norm_->forward(x))));
  }

 private:
  torch::nn::LayerNorm norm_;
  torch::nn::Linear up_;
  torch::nn::Linear down_;
};

/// The same weights at every call.
inline torch::nn::Sequential equal_blocks(int count, std::int64_t width, std::int64_t hidden) {
  torch::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < count; ++i) net->push_back(std::make_shared<Block>(width, hidden));
  return net;
}

}  // namespace headrace::bench
