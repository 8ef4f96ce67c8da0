#include "headrace/train/parallelize.h"

#include <chrono>
#include <utility>

#include "headrace/schedule/passes.h"

namespace headrace::train {
namespace {

optim::OptimizerFactory optimizer_of(const record::OptimizerSection& section) {
  optim::OptimizerSettings settings;
  settings.name = section.name;
  settings.lr = section.lr;
  settings.weight_decay = section.weight_decay;
  settings.momentum = section.momentum;
  settings.beta1 = section.beta1;
  settings.beta2 = section.beta2;
  settings.eps = section.eps;
  return optim::optimizer_factory(settings);
}

}  // namespace

runtime::PipelineOptions pipeline_options(const record::Recipe& recipe,
                                          std::vector<at::Tensor> sample, base::LogSink log) {
  const auto& parallelism = recipe.parallelism;
  const double timeout_ms = recipe.comm.timeout_seconds * 1e3;
  runtime::PipelineOptions options(static_cast<int>(parallelism.pipeline_parallel_size));
  options.microbatches(static_cast<int>(record::num_microbatches(recipe)))
      .schedule(parallelism.pipeline_schedule)
      .remat(schedule::remat_from_text(recipe.activation_checkpoint.mode))
      .balance(parallelism.balance == "parameters" ? runtime::Balance::kParameters
                                                   : runtime::Balance::kMeasured)
      .layers_per_stage({parallelism.layers_per_stage.begin(), parallelism.layers_per_stage.end()})
      .sample(std::move(sample))
      .optimizer(optimizer_of(recipe.optimizer))
      .max_norm(recipe.training.max_norm)
      .seed(static_cast<std::uint64_t>(recipe.debug.seed))
      .intra_op_threads(static_cast<int>(recipe.training.intra_op_threads))
      .timeout(std::chrono::milliseconds(static_cast<std::int64_t>(timeout_ms)))
      .log(std::move(log));
  return options;
}

optim::LrSchedule lr_schedule(const record::Recipe& recipe) {
  const auto& section = recipe.lr_scheduler;
  optim::LrSchedule schedule;
  schedule.lr = recipe.optimizer.lr;
  schedule.warmup_steps = section.warmup_steps;
  schedule.total_steps = section.total_steps > 0 ? section.total_steps : recipe.training.steps;
  schedule.decay = optim::decay_from_text(section.decay_type);
  schedule.decay_ratio = section.decay_ratio;
  schedule.min_lr_factor = section.min_lr_factor;
  return schedule;
}

}  // namespace headrace::train
