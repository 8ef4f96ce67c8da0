// How a Pipeline comes to its stages: options checked, the net cut, the workers started.
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/memory/allocator.h"
#include "headrace/runtime/measure.h"
#include "headrace/runtime/microbatch.h"
#include "headrace/runtime/pipeline_impl.h"

namespace headrace::runtime {
namespace {

void require(bool condition, const std::string& message) {
  if (!condition) throw base::ConfigError(message);
}

}  // namespace

Pipeline::Impl::Impl(std::vector<model::NamedLayer> layers, PipelineOptions options)
    : options_(std::move(options)), layers_(std::move(layers)) {
  check_options();
  memory::install_allocator();
  parameters_ = std::make_shared<const ParameterStore>(layers_);
  const bool needs_batch = options_.balance_ == Balance::kMeasured &&
                           options_.layers_per_stage_.empty() && options_.num_workers_ > 1;
  if (!needs_batch || !options_.sample_.empty()) build(options_.sample_);
}

void Pipeline::Impl::check_options() const {
  const PipelineOptions& o = options_;
  require(o.num_workers_ >= 1,
          "a Pipeline needs at least 1 worker, not " + std::to_string(o.num_workers_));
  require(o.microbatches_ >= 1,
          "a batch is divided into at least 1 microbatch, not " + std::to_string(o.microbatches_));
  require(o.num_workers_ <= static_cast<int>(layers_.size()),
          "every stage holds at least one layer, but the net has " +
              std::to_string(layers_.size()) + " layers for " + std::to_string(o.num_workers_) +
              " workers; use at most " + std::to_string(layers_.size()) +
              " workers or split the net into more layers");
  require(o.devices_.empty() || static_cast<int>(o.devices_.size()) == o.num_workers_,
          "one device per stage is needed: " + std::to_string(o.devices_.size()) +
              " devices are given for " + std::to_string(o.num_workers_) + " stages");
  require(
      std::isfinite(o.max_norm_) && o.max_norm_ >= 0,
      "max_norm must be a finite number >= 0 (0 = no clip), not " + std::to_string(o.max_norm_));
  require(
      o.max_norm_ == 0 || o.optimizer_,
      "max_norm clips inside the update, which needs an optimizer factory "
      "(PipelineOptions::optimizer); with an optimizer of your own clip its gradients yourself");
  require(o.intra_op_threads_ >= 1,
          "intra_op_threads must be at least 1, not " + std::to_string(o.intra_op_threads_));
  require(o.timeout_.count() > 0,
          "timeout must be positive, not " + std::to_string(o.timeout_.count()) + " ms");
  if (!o.layers_per_stage_.empty()) {
    require(static_cast<int>(o.layers_per_stage_.size()) == o.num_workers_,
            "layers_per_stage has " + std::to_string(o.layers_per_stage_.size()) + " entries for " +
                std::to_string(o.num_workers_) + " stages");
    plan::cut_by_hand(o.layers_per_stage_, static_cast<int>(layers_.size()));
  }
  // Refuses an unknown name and a shape that the method does not allow.
  make_program({.schedule = o.schedule_,
                .num_workers = o.num_workers_,
                .num_microbatches = o.microbatches_,
                .present = o.microbatches_,
                .remat = o.remat_,
                .tied_stages = {},
                .update = static_cast<bool>(o.optimizer_)});
}

plan::Cut Pipeline::Impl::choose_cut(const Tensors& batch) {
  const int num_layers = static_cast<int>(layers_.size());
  if (!options_.layers_per_stage_.empty()) {
    return plan::cut_by_hand(options_.layers_per_stage_, num_layers);
  }
  std::vector<double> costs;
  if (options_.num_workers_ == 1) {
    costs.assign(num_layers, 0.0);
  } else if (options_.balance_ == Balance::kParameters) {
    costs.assign(num_layers, 0.0);
    for (const Parameter& parameter : parameters_->parameters()) {
      costs[parameter.layers.front()] += static_cast<double>(parameter.tensor.numel());
    }
  } else {
    const auto sizes = microbatch_sizes(batch_rows(batch, "input"), options_.microbatches_);
    require(!sizes.empty(), "the layers are measured on a microbatch, but the batch has no rows");
    plan::Profile profile;
    profile.microbatch_rows = sizes[0];
    profile.layers =
        measure_layers_within(options_.timeout_, options_.intra_op_threads_, layers_,
                              split_rows(batch, sizes)[0], {.seed = options_.seed_}, options_.log_);
    for (const plan::LayerProfile& layer : profile.layers) {
      const bool twice = options_.remat_ != Remat::kNever;  // its forward runs again
      costs.push_back(layer.seconds() + (twice ? layer.forward_seconds : 0.0));
    }
    profile_ = std::move(profile);
  }
  return plan::cut_by_cost(costs, options_.num_workers_);
}

void Pipeline::Impl::build(const Tensors& batch) {
  if (crew_) return;
  const plan::Cut cut = choose_cut(batch);
  const int num_stages = cut.num_stages();
  std::vector<int> worker_of_layer;
  std::vector<int> worker_of_stage(num_stages);
  std::iota(worker_of_stage.begin(), worker_of_stage.end(), 0);
  for (int s = 0; s < num_stages; ++s) {
    worker_of_layer.insert(worker_of_layer.end(), cut.first[s + 1] - cut.first[s],
                           worker_of_stage[s]);
  }
  parameters_->check_shared_buffers(worker_of_layer);

  std::vector<std::unique_ptr<Stage>> stages;
  for (int s = 0; s < num_stages; ++s) {
    const Stage::Place place{
        .index = s,
        .first_layer = cut.first[s],
        .last = s + 1 == num_stages,
        .device = options_.devices_.empty() ? at::Device(at::kCPU) : options_.devices_[s]};
    stages.push_back(
        std::make_unique<Stage>(place,
                                std::vector<model::NamedLayer>(layers_.begin() + cut.first[s],
                                                               layers_.begin() + cut.first[s + 1]),
                                *parameters_, options_.optimizer_));
  }
  executor_ = std::make_shared<Executor>(std::move(stages), std::move(worker_of_stage), parameters_,
                                         options_.timeout_);
  crew_ = std::make_unique<Crew>(executor_, options_.intra_op_threads_, options_.log_);
  cut_ = cut;
}

std::shared_ptr<const Program> Pipeline::Impl::program(int present, bool training) {
  std::shared_ptr<const Program>& entry = programs_[{present, training}];
  if (!entry) {
    entry = std::make_shared<const Program>(
        make_program({.schedule = options_.schedule_,
                      .num_workers = options_.num_workers_,
                      .num_microbatches = options_.microbatches_,
                      .present = present,
                      .remat = options_.remat_,
                      .tied_stages = executor_->tied_stages(),
                      .update = static_cast<bool>(options_.optimizer_),
                      .training = training}));
  }
  return entry;
}

std::vector<StageMemory> Pipeline::Impl::memory() const {
  std::vector<StageMemory> result;
  if (!executor_) return result;
  for (const auto& stage : executor_->stages()) {
    const memory::Account& account = *stage->account();
    result.push_back({account.live_bytes(), account.peak_bytes(), account.allocations()});
  }
  return result;
}

void Pipeline::Impl::reset_peak() {
  if (!executor_) return;
  for (const auto& stage : executor_->stages()) stage->account()->reset_peak();
}

void Pipeline::Impl::load_state(const PipelineState& state) {
  options_.seed_ = state.seed;
  next_step_ = state.step;
  next_microbatch_ = 0;
}

}  // namespace headrace::runtime
