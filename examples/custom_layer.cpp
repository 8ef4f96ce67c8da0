// A layer with two inputs and two outputs: the additive coupling of NICE (arXiv 1410.8516), six of
// them over three workers. What flows between the layers is a list of tensors, here (a, b).
//
//   a ----------(+)----> b'        Split | Coupling x 6 | Join
//                ^                    x -> (a, b)    (a, b) -> y
//   b ---+--> f -+
//        +-------------> a'
#include <cstdio>
#include <memory>
#include <string>

#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include "headrace/headrace.h"

namespace {

constexpr int kWidth = 16;

/// x [N, 2 * kWidth] -> a, b [N, kWidth].
class Split : public headrace::Layer {
 public:
  headrace::Tensors forward(headrace::Tensors inputs) override { return inputs[0].chunk(2, 1); }
};

class Coupling : public headrace::Layer {
 public:
  Coupling() : f_(register_module("f", torch::nn::Linear(kWidth, kWidth))) {}

  headrace::Tensors forward(headrace::Tensors inputs) override {
    const at::Tensor& a = inputs[0];
    const at::Tensor& b = inputs[1];
    return {b, a + f_(b).tanh()};  // b is handed on as it came
  }

 private:
  torch::nn::Linear f_;
};

class Join : public headrace::Layer {
 public:
  headrace::Tensors forward(headrace::Tensors inputs) override { return {at::cat(inputs, 1)}; }
};

}  // namespace

int main() {
  at::manual_seed(1);
  torch::nn::Sequential net;
  net->push_back("split", std::make_shared<Split>());
  for (int i = 0; i < 6; ++i) {
    net->push_back("coupling" + std::to_string(i), std::make_shared<Coupling>());
  }
  net->push_back("join", std::make_shared<Join>());

  headrace::Pipeline pipeline(net, headrace::PipelineOptions(3).microbatches(6).schedule("1F1B"));
  torch::optim::AdamW optimizer(pipeline.parameters(), 1e-2);

  // To be learnt: each value's neighbour is added to it, squashed.
  const at::Tensor x = at::randn({96, 2 * kWidth});
  const at::Tensor target = x + x.roll(1, 1).tanh();
  double first = 0;
  double loss = 0;
  for (int step = 0; step < 150; ++step) {
    loss = pipeline.step(x, target, headrace::mse()).loss;
    optimizer.step();
    first = step == 0 ? loss : first;
  }
  std::printf("layers: %s\n", headrace::plan::to_text(*pipeline.cut()).c_str());
  std::printf("loss: %.4f -> %.4f\n", first, loss);
  return loss < 0.5 * first ? 0 : 1;
}
