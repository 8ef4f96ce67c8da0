// The end of a stage's step: norms of its gradients, the update, BatchNorm's running statistics.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <torch/optim/optimizer.h>

#include "headrace/optim/norm.h"
#include "headrace/runtime/stage.h"
#include "headrace/runtime/stage_impl.h"

namespace headrace::runtime {

void Stage::measure_norms(Step& step) {
  const c10::OptionalDeviceGuard device(place_.device);
  for (const auto& [index, parameter] : impl_->owned) {
    step.squared_norms.at(index) = optim::squared_norm(parameter.grad());
  }
  if (!place_.last) return;
  for (std::size_t m = 0; m < step.losses.size(); ++m) {
    step.loss_values.at(m) = step.losses[m].item<double>();
  }
}

void Stage::update(const Step& step, double scale) {
  if (!impl_->optimizer) return;
  const c10::OptionalDeviceGuard device(place_.device);
  const at::NoGradGuard no_grad;
  if (scale < 1) {
    for (const auto& [index, parameter] : impl_->owned) {
      if (parameter.grad().defined()) parameter.mutable_grad().mul_(scale);
    }
  }
  if (step.lr) optim::set_lr(*impl_->optimizer, *step.lr);
  impl_->optimizer->step();
}

void Stage::commit_statistics() {
  for (StageLayer& layer : impl_->layers) layer.statistics->commit();
}

}  // namespace headrace::runtime
