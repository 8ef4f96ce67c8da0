// A stock torch::nn::Sequential trained by two workers: GPipe, four microbatches, activations of
// all but the last microbatch recomputed (R) instead of kept.
//
//   worker 0   F0 F1 F2 F3 R0       B0 R1 B1 R2 B2 B3
//   worker 1      F0 F1 F2 F3 R0 B0 R1 B1 R2 B2 B3
#include <cstdio>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include "headrace/headrace.h"

namespace {

/// Points of the square [-1, 1]^2, x [rows, 2], and whether each lies in a circle, y [rows] int64.
std::pair<at::Tensor, at::Tensor> points(int rows) {
  at::Tensor x = at::rand({rows, 2}) * 2 - 1;
  at::Tensor y = (x.square().sum(1) < 0.64).to(at::kLong);
  return {x, y};
}

}  // namespace

int main() {
  at::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(2, 64), torch::nn::GELU(), torch::nn::Dropout(0.1),
                            torch::nn::Linear(64, 64), torch::nn::GELU(), torch::nn::Linear(64, 2));

  headrace::Pipeline pipeline(net,
                              headrace::PipelineOptions(2).microbatches(4).schedule("GPipe").remat(
                                  headrace::Remat::kExceptLast));
  // The parameters are the net's own: any LibTorch optimizer steps them.
  torch::optim::AdamW optimizer(pipeline.parameters(), 1e-2);

  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    auto [x, y] = points(128);
    loss = pipeline.step(x, y, headrace::cross_entropy()).loss;  // forward, backward
    optimizer.step();
    if (step % 40 == 0) {
      std::printf("step: %3d  loss: %.4f\n", step, loss);
    }
  }

  auto [x, y] = points(1000);
  double right = pipeline.forward(x).argmax(1).eq(y).to(at::kDouble).mean().item<double>();
  std::printf("loss: %.4f  right: %.1f %% of 1000 new points\n", loss, 100 * right);
  return right > 0.9 ? 0 : 1;
}
