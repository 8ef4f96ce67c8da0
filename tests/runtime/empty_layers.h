// A net that computes nothing, one layer a stage, run by a Pipeline and by a bare loop: what is
// left between the two is the runtime's own cost. Used by the test and by bench/action_cost.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/sequential.h>

#include "headrace/runtime/pipeline.h"

namespace headrace::test {

/// One element a microbatch. The first layer adds a parameter, so that gradients flow; the others
/// return a view of their input.
struct EmptyLayers {
  EmptyLayers(int workers, int microbatches);

  runtime::Pipeline make_pipeline() const;
  void step(runtime::Pipeline& pipeline) const;

  /// The same layers in the calling thread, in plain LibTorch: one graph a microbatch.
  void bare_step();
  /// The same, cut into stages: each layer has a graph of its own, as it has in a pipeline.
  void bare_step_by_stage();

  int workers;
  int microbatches;
  torch::nn::Sequential net;
  std::vector<at::Tensor> parameters;
  at::Tensor input;
  at::Tensor target;
  runtime::Loss loss;
};

}  // namespace headrace::test
