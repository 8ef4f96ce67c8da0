// All that most programs need: the names in namespace headrace, and the headers behind them.
//
//   headrace::Pipeline pipeline(net, headrace::PipelineOptions(2).microbatches(8));
//   headrace::StepResult result = pipeline.step(input, target, headrace::cross_entropy());
#pragma once

#include "headrace/base/error.h"
#include "headrace/memory/allocator.h"
#include "headrace/model/layer.h"
#include "headrace/model/loss.h"
#include "headrace/plan/partition.h"
#include "headrace/plan/profile.h"
#include "headrace/runtime/pipeline.h"

namespace headrace {

using base::CommError;
using base::ConfigError;
using base::Error;
using base::IoError;
using base::ScheduleError;

using memory::install_allocator;

using model::cross_entropy;
using model::Layer;
using model::LayerSpec;
using model::Loss;
using model::mse;
using model::Tensors;

using runtime::Balance;
using runtime::Pipeline;
using runtime::PipelineOptions;
using runtime::Remat;
using runtime::StageMemory;
using runtime::StepOptions;
using runtime::StepResult;

}  // namespace headrace
