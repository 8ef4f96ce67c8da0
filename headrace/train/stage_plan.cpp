#include "headrace/train/stage_plan.h"

#include <nlohmann/json.hpp>

#include "headrace/base/json.h"
#include "headrace/base/table.h"
#include "headrace/base/text.h"
#include "headrace/base/units.h"
#include "headrace/model/sequence.h"

namespace headrace::train {
namespace {

/// Forwards that a step adds by recomputing.
int recomputed(schedule::Remat remat, int microbatches) {
  if (remat == schedule::Remat::kNever) return 0;
  return remat == schedule::Remat::kAlways ? microbatches : microbatches - 1;
}

std::string milliseconds(double seconds) {
  return base::fixed_text(seconds * 1e3, 1) + " ms";
}

std::string span_of(const std::vector<std::string>& layers) {
  if (layers.size() == 1) return layers.front();
  return layers.front() + " .. " + layers.back();
}

}  // namespace

RunPlan plan_of(const runtime::Pipeline& pipeline, const runtime::PipelineOptions& options) {
  RunPlan plan;
  plan.schedule = options.schedule_;
  plan.num_microbatches = options.microbatches_;
  plan.remat = schedule::remat_name(options.remat_);
  const auto& layers = pipeline.layers();
  const auto parameters = pipeline.named_parameters();
  const int again = recomputed(options.remat_, options.microbatches_);
  for (int s = 0; s < pipeline.cut()->num_stages(); ++s) {
    StagePlan stage;
    for (int i = pipeline.cut()->first[s]; i < pipeline.cut()->first[s + 1]; ++i) {
      const std::string prefix = layers[i].name + ".";
      stage.layers.push_back(layers[i].name);
      for (const auto& [name, tensor] : parameters) {
        if (name.starts_with(prefix)) stage.parameters += tensor.numel();
      }
      if (pipeline.profile()) {
        const plan::LayerProfile& layer = pipeline.profile()->layers[i];
        stage.predicted_seconds +=
            options.microbatches_ * layer.seconds() + again * layer.forward_seconds;
      }
    }
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

std::string to_json(const RunPlan& plan) {
  nlohmann::json stages = nlohmann::json::array();
  for (const StagePlan& stage : plan.stages) {
    stages.push_back({{"layers", stage.layers},
                      {"parameters", stage.parameters},
                      {"predicted_seconds_per_step", stage.predicted_seconds}});
  }
  return base::json_text({{"format_version", 1},
                          {"schedule", plan.schedule},
                          {"num_microbatches", plan.num_microbatches},
                          {"activation_checkpoint_mode", plan.remat},
                          {"stages", stages}});
}

std::string to_text(const RunPlan& plan, const std::vector<double>& busy_seconds,
                    const std::vector<runtime::StageMemory>& memory) {
  std::vector<std::string> header{"stage", "layers", "parameters", "predicted/step"};
  if (!busy_seconds.empty()) header.push_back("measured/step");
  if (!memory.empty()) header.push_back("peak memory");
  base::Table table(header);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stages[s];
    std::vector<std::string> row{
        std::to_string(s), span_of(stage.layers), base::thousands(stage.parameters),
        stage.predicted_seconds > 0 ? milliseconds(stage.predicted_seconds) : "-"};
    if (!busy_seconds.empty()) row.push_back(milliseconds(busy_seconds.at(s)));
    if (!memory.empty()) row.push_back(base::bytes_text(memory.at(s).peak_bytes));
    table.add(row);
  }
  return table.to_text();
}

}  // namespace headrace::train
