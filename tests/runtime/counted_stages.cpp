#include "tests/runtime/counted_stages.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace headrace::test {

using runtime::Pipeline;
using runtime::PipelineOptions;
using runtime::Remat;

std::vector<std::int64_t> counted_peaks(const CountedStages& size, const std::string& schedule,
                                        Remat remat) {
  torch::nn::Sequential net;
  for (int i = 0; i < size.workers * size.pairs_per_stage; ++i) {
    net->push_back(torch::nn::Linear(size.width, size.width));
    net->push_back(torch::nn::Sigmoid());
  }
  Pipeline pipeline(
      net, PipelineOptions(size.workers)
               .microbatches(size.microbatches)
               .schedule(schedule)
               .remat(remat)
               .layers_per_stage(std::vector<int>(size.workers, 2 * size.pairs_per_stage)));
  const at::Tensor input = at::randn({size.microbatches * size.rows, size.width});
  const at::Tensor target = at::randn({size.microbatches * size.rows, size.width});
  pipeline.step(input, target, model::mse());
  pipeline.reset_peak();
  pipeline.step(input, target, model::mse());
  std::vector<std::int64_t> peaks;
  for (const runtime::StageMemory& stage : pipeline.memory()) peaks.push_back(stage.peak_bytes);
  return peaks;
}

std::vector<double> formula_units(const CountedStages& size, const std::string& schedule,
                                  Remat remat) {
  const double pairs = size.pairs_per_stage;
  const double microbatches = size.microbatches;
  std::vector<double> units;
  for (int s = 0; s < size.workers; ++s) {
    const double boundary = s + 1 < size.workers ? microbatches : 0;
    const int live =
        schedule == "1F1B" ? std::min(size.workers - s, size.microbatches) : size.microbatches;
    switch (remat) {
      case Remat::kNever:
        units.push_back(live * pairs);
        break;
      case Remat::kAlways:
        units.push_back(boundary + pairs);
        break;
      case Remat::kExceptLast:
        units.push_back(boundary + 2 * pairs);
        break;
    }
  }
  return units;
}

}  // namespace headrace::test
