#include "headrace/runtime/executor.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include "headrace/optim/norm.h"
#include "headrace/schedule/text.h"

namespace headrace::runtime {

using schedule::Kind;

Executor::Executor(std::vector<std::unique_ptr<Stage>> stages, std::vector<int> worker_of_stage,
                   std::shared_ptr<const ParameterStore> parameters,
                   std::chrono::milliseconds limit)
    : stages_(std::move(stages)),
      worker_of_stage_(std::move(worker_of_stage)),
      parameters_(std::move(parameters)),
      limit_(limit) {
  for (const auto& stage : stages_) {
    down_.push_back(std::make_unique<Channel>());
    up_.push_back(std::make_unique<Channel>());
    stage_of_layer_.insert(stage_of_layer_.end(), stage->layers().size(), stage->place().index);
  }
  std::set<int> tied;
  for (const Parameter& parameter : parameters_->parameters()) {
    if (!parameter.tied()) continue;
    for (const int layer : parameter.layers) tied.insert(stage_of_layer_[layer]);
  }
  tied_stages_.assign(tied.begin(), tied.end());
  const int workers = 1 + *std::max_element(worker_of_stage_.begin(), worker_of_stage_.end());
  for (int w = 0; w < workers; ++w) progress_.push_back(std::make_unique<Progress>());
}

void Executor::open(Step& step) {
  failure_.clear();
  const int microbatches = step.program->num_microbatches;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    stages_[s]->open(step);
    down_[s]->open(microbatches, step.program->proof.forward_packets[s]);
    up_[s]->open(microbatches, step.program->proof.backward_packets[s]);
  }
  ties_.open(static_cast<int>(tied_stages_.size()));
  norms_.open(static_cast<int>(stages_.size()));
  step.losses.resize(step.training ? microbatches : 0);
  step.loss_values.resize(step.losses.size());
  step.outputs.resize(step.keep_outputs ? microbatches : 0);
  step.squared_norms.assign(parameters_->parameters().size(), 0.0);
}

void Executor::run(int worker, Step& step) {
  Progress& progress = *progress_[worker];
  progress.wait_seconds = 0;
  const Clock::time_point start = Clock::now();
  try {
    for (const Cell& cell : step.program->workers[worker]) {
      progress.begin(&cell);
      const memory::AccountGuard account(stages_[cell.action.stage]->account());
      execute(cell, step, progress);
    }
  } catch (const Closed&) {
    // Another worker failed first and has reported it.
  } catch (const TimedOut& timeout) {
    fail(std::make_exception_ptr(wait_error(worker, timeout)), place_of(worker));
  } catch (...) {
    fail(std::current_exception(), place_of(worker));
  }
  progress.begin(nullptr);
  progress.total_seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

void Executor::execute(const Cell& cell, Step& step, Progress& progress) {
  Stage& stage = *stages_[cell.action.stage];
  switch (cell.action.kind) {
    case Kind::kForward:
      return forward(cell, step, progress);
    case Kind::kBackward:
      return backward(cell, step, progress);
    case Kind::kRecompute:
      return stage.recompute(step, cell.action.microbatch);
    case Kind::kReduceTie:
      return ties_.arrive();
    case Kind::kNorm:
      return norm(cell, step, progress);
    case Kind::kUpdate:
      return update(cell, step, progress);
    default:
      HEADRACE_INVARIANT(false && "make_program lets no other kind through");
  }
}

void Executor::forward(const Cell& cell, Step& step, Progress& progress) {
  const int s = cell.action.stage;
  const int microbatch = cell.action.microbatch;
  Packet input;
  if (s == 0) {
    input.values = step.inputs[microbatch];
    input.needs_grad.assign(input.values.size(), false);
  } else {
    input = down_[s]->receive(microbatch, limit_, progress.wait_seconds);
    progress.touch();
  }
  const Keep keep = !step.training          ? Keep::kNothing
                    : cell.keep_inputs_only ? Keep::kInputs
                                            : Keep::kGraph;
  Packet output = stages_[s]->forward(step, microbatch, std::move(input), keep);
  if (s + 1 < static_cast<int>(stages_.size())) down_[s + 1]->send(microbatch, std::move(output));
}

void Executor::backward(const Cell& cell, Step& step, Progress& progress) {
  const int s = cell.action.stage;
  const int microbatch = cell.action.microbatch;
  Packet gradients;
  if (s + 1 < static_cast<int>(stages_.size())) {
    gradients = up_[s]->receive(microbatch, limit_, progress.wait_seconds);
    progress.touch();
  }
  Packet result = stages_[s]->backward(step, microbatch, std::move(gradients));
  if (s > 0) up_[s - 1]->send(microbatch, std::move(result));
}

void Executor::norm(const Cell& cell, Step& step, Progress& progress) {
  Stage& stage = *stages_[cell.action.stage];
  const auto& all = parameters_->parameters();
  const bool owns_tied =
      std::any_of(stage.owned_parameters().begin(), stage.owned_parameters().end(),
                  [&](int p) { return all[p].tied(); });
  if (owns_tied) {
    ties_.wait(limit_, progress.wait_seconds);
    progress.touch();
    sum_tied(stage);
  }
  stage.measure_norms(step);
  norms_.arrive();
}

void Executor::sum_tied(const Stage& stage) {
  const at::NoGradGuard no_grad;
  for (const int p : stage.owned_parameters()) {
    const Parameter& parameter = parameters_->parameters()[p];
    if (!parameter.tied()) continue;
    at::Tensor sum;
    for (const int layer : parameter.layers) {
      const at::Tensor& use = stages_[stage_of_layer_[layer]]->tied_gradient(p, layer);
      if (!use.defined()) continue;
      if (sum.defined()) {
        sum.add_(use.to(sum.device()));
      } else {
        sum = use.to(parameter.tensor.device(), use.scalar_type(), false, /*copy=*/true);
      }
    }
    parameter.tensor.mutable_grad() = sum;
  }
}

void Executor::update(const Cell& cell, Step& step, Progress& progress) {
  norms_.wait(limit_, progress.wait_seconds);
  progress.touch();
  const Verdict result = verdict(step);
  if (!result.finite) return;
  const double scale = step.max_norm > 0 ? optim::clip_scale(result.norm, step.max_norm) : 1.0;
  stages_[cell.action.stage]->update(step, scale);
}

Verdict Executor::verdict(const Step& step) {
  Verdict result;
  result.norm = optim::global_norm(step.squared_norms);
  result.finite =
      std::isfinite(result.norm) && std::all_of(step.loss_values.begin(), step.loss_values.end(),
                                                [](double loss) { return std::isfinite(loss); });
  return result;
}

void Executor::clear() {
  for (auto& stage : stages_) stage->clear();
}

void Executor::zero_grad() {
  for (auto& stage : stages_) stage->zero_grad();
}

void Executor::commit_statistics() {
  for (auto& stage : stages_) stage->commit_statistics();
}

}  // namespace headrace::runtime
