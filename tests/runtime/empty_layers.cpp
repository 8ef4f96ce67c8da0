#include "tests/runtime/empty_layers.h"

#include <memory>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

namespace headrace::test {
namespace {

struct Offset : torch::nn::Module {
  Offset() : offset(register_parameter("offset", at::zeros({1}))) {}
  at::Tensor forward(const at::Tensor& x) { return x + offset; }
  at::Tensor offset;
};

struct View : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x.view_as(x); }
};

at::Tensor call(torch::nn::Sequential& net, int layer, const at::Tensor& x) {
  if (layer == 0) return static_cast<Offset&>(*net->ptr(0)).forward(x);
  return static_cast<View&>(*net->ptr(layer)).forward(x);
}

}  // namespace

EmptyLayers::EmptyLayers(int num_workers, int num_microbatches)
    : workers(num_workers),
      microbatches(num_microbatches),
      input(at::ones({num_microbatches})),
      target(at::zeros({num_microbatches})) {
  net->push_back(std::make_shared<Offset>());
  for (int i = 1; i < workers; ++i) net->push_back(std::make_shared<View>());
  parameters = net->parameters();
  loss.sum = [](const model::Tensors& outputs, const at::Tensor&) { return outputs[0].sum(); };
  loss.weight = [](const at::Tensor& rows) { return static_cast<double>(rows.size(0)); };
}

runtime::Pipeline EmptyLayers::make_pipeline() const {
  return runtime::Pipeline(net, runtime::PipelineOptions(workers)
                                    .microbatches(microbatches)
                                    .layers_per_stage(std::vector<int>(workers, 1)));
}

void EmptyLayers::step(runtime::Pipeline& pipeline) const {
  pipeline.step(input, target, loss);
}

void EmptyLayers::bare_step() {
  for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
  for (int m = 0; m < microbatches; ++m) {
    at::Tensor x = input.narrow(0, m, 1);
    for (int layer = 0; layer < workers; ++layer) x = call(net, layer, x);
    (loss.sum({x}, target) / static_cast<double>(microbatches)).backward();
  }
}

void EmptyLayers::bare_step_by_stage() {
  for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
  std::vector<at::Tensor> inputs(workers);
  std::vector<at::Tensor> outputs(workers);
  for (int m = 0; m < microbatches; ++m) {
    inputs[0] = input.narrow(0, m, 1);
    for (int stage = 0; stage < workers; ++stage) {
      if (stage > 0) inputs[stage] = outputs[stage - 1].detach().set_requires_grad(true);
      outputs[stage] = call(net, stage, inputs[stage]);
    }
    (loss.sum({outputs[workers - 1]}, target) / static_cast<double>(microbatches)).backward();
    for (int stage = workers - 1; stage > 0; --stage) {
      outputs[stage - 1].backward(inputs[stage].grad());
    }
  }
}

}  // namespace headrace::test
