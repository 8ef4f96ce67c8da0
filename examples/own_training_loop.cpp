// A training loop of one's own: two calls of step() per update, a learning rate that falls, an
// evaluation now and then, and a look at what the pipeline did.
//
//   for each update:   step(part 0)   step(part 1, accumulate)   optimizer.step()
//                      gradients = ...            ... += ...     weights move
#include <cstdio>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/sgd.h>

#include "headrace/headrace.h"

namespace {

constexpr int kRows = 64;  // of one part
constexpr int kParts = 2;
constexpr int kSteps = 120;

/// x [rows, 8] and the index of its largest value, y [rows] int64.
std::pair<at::Tensor, at::Tensor> batch(int rows) {
  at::Tensor x = at::randn({rows, 8});
  return {x, x.argmax(1)};
}

double accuracy(headrace::Pipeline& pipeline) {
  auto [x, y] = batch(500);
  return pipeline.forward(x).argmax(1).eq(y).to(at::kDouble).mean().item<double>();
}

double train(headrace::Pipeline& pipeline) {
  torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < kSteps; ++step) {
    for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
      group.options().set_lr(step < kSteps / 2 ? 0.1 : 0.02);
    }
    double loss = 0;
    for (int part = 0; part < kParts; ++part) {
      auto [x, y] = batch(kRows);
      // The loss is a mean over the rows of the whole update, so both calls are told their number.
      headrace::StepResult result =
          pipeline.step(x, y, headrace::cross_entropy(),
                        headrace::StepOptions().accumulate(part > 0).total_weight(kParts * kRows));
      loss += result.loss;
    }
    optimizer.step();
    if (step % 30 == 0) {
      std::printf("step: %3d  loss: %.4f  right: %.1f %%\n", step, loss, 100 * accuracy(pipeline));
    }
  }
  return accuracy(pipeline);
}

}  // namespace

int main() {
  headrace::install_allocator();  // counts bytes per stage; before the first tensor
  at::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(8, 128), torch::nn::ReLU(),
                            torch::nn::LayerNorm(torch::nn::LayerNormOptions({128})),
                            torch::nn::Linear(128, 128), torch::nn::ReLU(),
                            torch::nn::Linear(128, 8));
  headrace::Pipeline pipeline(net, headrace::PipelineOptions(2).microbatches(8).schedule("1F1B"));
  double right = train(pipeline);

  std::printf("layers of each stage: %s\n", headrace::plan::to_text(*pipeline.cut()).c_str());
  for (const headrace::StageMemory& stage : pipeline.memory()) {
    std::printf("peak: %.1f KiB  live: %.1f KiB\n", stage.peak_bytes / 1024.0,
                stage.live_bytes / 1024.0);
  }
  std::printf("right: %.1f %%\n", 100 * right);
  return right > 0.8 ? 0 : 1;
}
