// One call of step() or forward(): the batch divided, the workers run, the result gathered.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "headrace/base/error.h"
#include "headrace/runtime/microbatch.h"
#include "headrace/runtime/pipeline_impl.h"

namespace headrace::runtime {
namespace {

/// Puts every module into eval mode and each one's own flag back at the end.
class EvalGuard {
 public:
  explicit EvalGuard(const std::vector<model::NamedLayer>& layers) {
    for (const model::NamedLayer& layer : layers) {
      for (const auto& module : layer.module->modules()) {
        flags_.emplace_back(module, module->is_training());
      }
    }
    for (const model::NamedLayer& layer : layers) layer.module->eval();
  }
  ~EvalGuard() {
    // Parents come before their children, whose flags they overwrite.
    for (const auto& [module, training] : flags_) module->train(training);
  }
  EvalGuard(const EvalGuard&) = delete;
  EvalGuard& operator=(const EvalGuard&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> flags_;
};

Tensors detached(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) result.push_back(tensor.detach());
  return result;
}

double checked_weight(const Loss& loss, const at::Tensor& target) {
  const double weight = loss.weight(target);
  if (!std::isfinite(weight) || weight < 0) {
    throw base::ConfigError(
        "the weight of a batch must be a finite number >= 0, but the loss's "
        "weight(target) returned " +
        std::to_string(weight));
  }
  return weight;
}

}  // namespace

std::shared_ptr<Step> Pipeline::Impl::make_step(const Tensors& inputs, bool training) {
  const std::int64_t rows = batch_rows(inputs, "input");
  if (rows == 0) throw base::ConfigError("the batch has no rows: give at least one");
  const auto sizes = microbatch_sizes(rows, options_.microbatches_);
  build(inputs);
  auto step = std::make_shared<Step>();
  step->program = program(static_cast<int>(sizes.size()), training);
  step->training = training;
  step->inputs = split_rows(detached(inputs), sizes);
  step->seed = options_.seed_;
  step->max_norm = options_.max_norm_;
  return step;
}

void Pipeline::Impl::number_step(Step& step, const StepOptions& options) {
  if (options.accumulate_ && options_.optimizer_) {
    throw base::ConfigError(
        "accumulate is for an optimizer of your own: with an optimizer factory "
        "every step ends with the update; give a larger batch and more "
        "microbatches instead");
  }
  if (options.accumulate_ && next_step_ == 0) {
    throw base::ConfigError(
        "the first step of an update must not accumulate: there is nothing to "
        "add to yet");
  }
  step.key_step = options.accumulate_ ? next_step_ - 1 : next_step_;
  step.first_microbatch = options.accumulate_ ? next_microbatch_ : 0;
}

StepResult Pipeline::Impl::step(const Tensors& inputs, const at::Tensor& target, const Loss& loss,
                                const StepOptions& options) {
  const Clock::time_point start = Clock::now();
  if (batch_rows({target}, "target") != batch_rows(inputs, "input")) {
    throw base::ConfigError(
        "input and target must have the same number of rows: " + std::to_string(inputs[0].size(0)) +
        " and " + std::to_string(target.size(0)));
  }
  if (options.lr_ && !options_.optimizer_) {
    throw base::ConfigError(
        "StepOptions::lr needs an optimizer factory (PipelineOptions::optimizer)"
        "; set the learning rate of your own optimizer instead");
  }
  std::shared_ptr<Step> step = make_step(inputs, /*training=*/true);
  number_step(*step, options);
  step->total_weight = options.total_weight_.value_or(checked_weight(loss, target));
  if (!std::isfinite(step->total_weight) || step->total_weight < 0) {
    throw base::ConfigError("total_weight must be a finite number >= 0, not " +
                            std::to_string(step->total_weight));
  }
  step->loss = loss;
  step->lr = options.lr_;
  step->keep_outputs = options.keep_outputs_;
  std::vector<std::int64_t> sizes;
  for (const Tensors& input : step->inputs) sizes.push_back(input[0].size(0));
  for (Tensors& part : split_rows({target}, sizes)) step->targets.push_back(std::move(part[0]));

  if (!options.accumulate_) executor_->zero_grad();
  StepResult result;
  if (step->total_weight == 0) {
    result.skipped = true;
  } else {
    crew_->run(step);
    result = result_of(*step, std::chrono::duration<double>(Clock::now() - start).count());
    if (result.finite) executor_->commit_statistics();
  }
  next_step_ = step->key_step + 1;
  next_microbatch_ = step->first_microbatch + step->inputs.size();
  return result;
}

StepResult Pipeline::Impl::result_of(const Step& step, double seconds) const {
  StepResult result;
  const Verdict verdict = Executor::verdict(step);
  result.microbatch_losses = step.loss_values;
  for (const double loss : step.loss_values) result.loss += loss;
  result.weight = step.total_weight;
  result.grad_norm = verdict.norm;
  result.finite = verdict.finite;
  result.skipped = !verdict.finite;
  result.num_microbatches = step.program->num_microbatches;
  result.seconds = seconds;
  for (int w = 0; w < executor_->num_workers(); ++w) {
    const Progress& progress = executor_->progress(w);
    result.workers.push_back(
        {progress.total_seconds - progress.wait_seconds, progress.wait_seconds});
  }
  result.outputs = join_rows(step.outputs);
  return result;
}

Tensors Pipeline::Impl::forward(const Tensors& inputs) {
  std::shared_ptr<Step> step = make_step(inputs, /*training=*/false);
  step->keep_outputs = true;
  step->key_step = std::numeric_limits<std::uint64_t>::max() - 1;
  const EvalGuard eval(layers_);
  crew_->run(step);
  return join_rows(step->outputs);
}

}  // namespace headrace::runtime
