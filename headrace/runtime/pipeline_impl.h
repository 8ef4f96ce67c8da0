// What a Pipeline holds. Private to pipeline*.cpp.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/model/sequence.h"
#include "headrace/runtime/executor.h"
#include "headrace/runtime/parameter_store.h"
#include "headrace/runtime/pipeline.h"
#include "headrace/runtime/program.h"
#include "headrace/runtime/worker.h"

namespace headrace::runtime {

class Pipeline::Impl {
 public:
  Impl(std::vector<model::NamedLayer> layers, PipelineOptions options);

  StepResult step(const Tensors& inputs, const at::Tensor& target, const Loss& loss,
                  const StepOptions& options);
  Tensors forward(const Tensors& inputs);

  const ParameterStore& parameters() const { return *parameters_; }
  const std::vector<model::NamedLayer>& layers() const { return layers_; }
  const std::optional<plan::Cut>& cut() const { return cut_; }
  const std::optional<plan::Profile>& profile() const { return profile_; }
  std::vector<StageMemory> memory() const;
  void reset_peak();
  PipelineState state() const { return {options_.seed_, next_step_}; }
  void load_state(const PipelineState& state);

 private:
  void check_options() const;
  /// Cuts the net and starts the workers, if that has not been done.
  void build(const Tensors& batch);
  plan::Cut choose_cut(const Tensors& batch);
  std::shared_ptr<const Program> program(int present, bool training);
  std::shared_ptr<Step> make_step(const Tensors& inputs, bool training);
  void number_step(Step& step, const StepOptions& options);
  StepResult result_of(const Step& step, double seconds) const;

  PipelineOptions options_;
  std::vector<model::NamedLayer> layers_;
  std::shared_ptr<const ParameterStore> parameters_;
  std::optional<plan::Cut> cut_;
  std::optional<plan::Profile> profile_;
  std::shared_ptr<Executor> executor_;
  std::unique_ptr<Crew> crew_;
  std::map<std::pair<int, bool>, std::shared_ptr<const Program>> programs_;
  std::uint64_t next_step_ = 0;
  std::uint64_t next_microbatch_ = 0;  // of the update that accumulating calls continue
};

}  // namespace headrace::runtime
