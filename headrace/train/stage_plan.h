// The cut of a run: what each stage holds and what it was predicted to cost, as plan.json and as a
// table beside what was measured (docs/formats/plan.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/runtime/pipeline.h"

namespace headrace::train {

struct StagePlan {
  std::vector<std::string> layers;
  std::int64_t parameters = 0;
  double predicted_seconds = 0;  // per step; 0 where the layers were not measured
};

struct RunPlan {
  std::string schedule;
  int num_microbatches = 1;
  std::string remat;
  std::vector<StagePlan> stages;
};

/// @param pipeline whose cut is made. @param rematerialised adds one more forward per microbatch.
RunPlan plan_of(const runtime::Pipeline& pipeline, const runtime::PipelineOptions& options);

/// plan.json, format_version 1.
std::string to_json(const RunPlan& plan);

/// One row per stage: layers, parameters, predicted and measured seconds per step, peak bytes.
/// @param busy_seconds,memory may be empty (before the run).
std::string to_text(const RunPlan& plan, const std::vector<double>& busy_seconds,
                    const std::vector<runtime::StageMemory>& memory);

}  // namespace headrace::train
