// Where parallelism is applied: from a recipe to the options of a Pipeline. Models know nothing of
// it.
#pragma once

#include "headrace/base/log.h"
#include "headrace/optim/lr_schedule.h"
#include "headrace/record/recipe.h"
#include "headrace/runtime/pipeline.h"

namespace headrace::train {

/// The Pipeline that a recipe asks for, its optimizer and clip included.
/// @param sample a typical batch: the layers are measured on its first microbatch.
/// @throws base::ConfigError for a name that the recipe's own checks let through.
runtime::PipelineOptions pipeline_options(const record::Recipe& recipe,
                                          std::vector<at::Tensor> sample, base::LogSink log);

optim::LrSchedule lr_schedule(const record::Recipe& recipe);

}  // namespace headrace::train
