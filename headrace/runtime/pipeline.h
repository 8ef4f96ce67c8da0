// Pipeline: one network, cut into stages, trained by one persistent thread per worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/base/log.h"
#include "headrace/model/loss.h"
#include "headrace/optim/optimizer.h"
#include "headrace/plan/partition.h"
#include "headrace/plan/profile.h"
#include "headrace/schedule/passes.h"

namespace torch::nn {
class Sequential;
}

namespace headrace::model {
struct LayerSpec;
struct NamedLayer;
}  // namespace headrace::model

namespace headrace::runtime {

using model::Loss;
using model::Tensors;
using schedule::Remat;

/// How the layers are shared out among the stages.
enum class Balance {
  kMeasured,    // layers timed on a real microbatch, exact min-max partition of their seconds
  kParameters,  // exact min-max partition of parameter counts
};

/// How a Pipeline is built. Fluent, as LibTorch's options.
class PipelineOptions {
 public:
  /// @param num_workers K, one thread each.
  explicit PipelineOptions(int num_workers) : num_workers_(num_workers) {}

  PipelineOptions& microbatches(int m) {
    microbatches_ = m;
    return *this;
  }
  /// A name of the registry ("GPipe", "1F1B", "Sequential").
  PipelineOptions& schedule(std::string name) {
    schedule_ = std::move(name);
    return *this;
  }
  PipelineOptions& remat(Remat remat) {
    remat_ = remat;
    return *this;
  }
  PipelineOptions& balance(Balance balance) {
    balance_ = balance;
    return *this;
  }
  /// Layers per stage, by hand (as printed by cut()).
  PipelineOptions& layers_per_stage(std::vector<int> n) {
    layers_per_stage_ = std::move(n);
    return *this;
  }
  /// A batch to measure the layers on at construction; else the first step() or forward() is used.
  PipelineOptions& sample(Tensors batch) {
    sample_ = std::move(batch);
    return *this;
  }
  /// Device of each stage. Default: all on the CPU.
  PipelineOptions& devices(std::vector<at::Device> devices) {
    devices_ = std::move(devices);
    return *this;
  }
  /// With a factory, NORM and U are part of the list and step() updates the weights.
  PipelineOptions& optimizer(optim::OptimizerFactory factory) {
    optimizer_ = std::move(factory);
    return *this;
  }
  /// Clips the global gradient norm at U. 0 = no clip. Needs an optimizer.
  PipelineOptions& max_norm(double max_norm) {
    max_norm_ = max_norm;
    return *this;
  }
  PipelineOptions& seed(std::uint64_t seed) {
    seed_ = seed;
    return *this;
  }
  /// LibTorch threads inside each worker. One gives the same bits for every K.
  PipelineOptions& intra_op_threads(int n) {
    intra_op_threads_ = n;
    return *this;
  }
  /// The limit on every wait.
  PipelineOptions& timeout(std::chrono::milliseconds limit) {
    timeout_ = limit;
    return *this;
  }

  /// Where the Pipeline tells what it must (a worker left behind). Default: nowhere.
  PipelineOptions& log(base::LogSink sink) {
    log_ = std::move(sink);
    return *this;
  }

  int num_workers_ = 1;
  int microbatches_ = 1;
  std::string schedule_ = "1F1B";
  Remat remat_ = Remat::kNever;
  Balance balance_ = Balance::kMeasured;
  std::vector<int> layers_per_stage_;
  Tensors sample_;
  std::vector<at::Device> devices_;
  optim::OptimizerFactory optimizer_;
  double max_norm_ = 0;
  std::uint64_t seed_ = 0;
  int intra_op_threads_ = 1;
  std::chrono::milliseconds timeout_{600'000};
  base::LogSink log_;
};

/// How one step is run.
class StepOptions {
 public:
  /// Adds to the gradients, keeps the step key and continues the microbatch index. The first call
  /// of an update leaves it off. Not with an optimizer factory.
  StepOptions& accumulate(bool on = true) {
    accumulate_ = on;
    return *this;
  }
  /// W, the weight of the whole update, when it spans several calls. Default: this batch's.
  StepOptions& total_weight(double w) {
    total_weight_ = w;
    return *this;
  }
  /// The learning rate of this update. Default: the optimizer's own.
  StepOptions& lr(double lr) {
    lr_ = lr;
    return *this;
  }
  /// Keeps the outputs of the last stage, joined along dimension 0.
  StepOptions& keep_outputs(bool on = true) {
    keep_outputs_ = on;
    return *this;
  }

  bool accumulate_ = false;
  std::optional<double> total_weight_;
  std::optional<double> lr_;
  bool keep_outputs_ = false;
};

/// Where one worker's time of a step went, from its own clock.
struct StageTime {
  double busy_seconds = 0;  // inside layers, loss, backward, update
  double wait_seconds = 0;  // for a packet or for the others
};

struct StepResult {
  double loss = 0;       // sum of the microbatches' loss sums over W, folded in fp64
  double weight = 0;     // W
  double grad_norm = 0;  // before clipping
  bool finite = true;    // loss and gradients; if not, nothing was updated
  bool skipped = false;  // W = 0, or not finite
  int num_microbatches = 0;
  std::vector<double> microbatch_losses;  // each: loss sum / W
  double seconds = 0;
  std::vector<StageTime> workers;
  Tensors outputs;  // only with keep_outputs
};

/// Bytes of one stage, counted by the allocator. Peak since the last reset_peak().
struct StageMemory {
  std::int64_t live_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t allocations = 0;  // of tensor storage, since the stage was made
};

struct PipelineState {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
};

/// Trains and evaluates one network over K workers. The same numbers to the bit for every K,
/// schedule and remat mode (fp32 on the CPU, same M).
///
/// Thread rule: one caller at a time. The layers must not be touched during a call.
/// Errors: ConfigError at construction or at the first call for what cannot work; from step() and
/// forward() the first failure of any worker, with worker, stage, action, microbatch and layer.
/// After an exceeded time limit the Pipeline is unusable (CommError).
class Pipeline {
 public:
  /// The net is shared, not copied, and never re-initialised.
  Pipeline(const torch::nn::Sequential& net, PipelineOptions options);
  Pipeline(const std::vector<model::LayerSpec>& layers, PipelineOptions options);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// Every parameter once, in the order of the layers, under its first name. Plain leaf tensors.
  std::vector<at::Tensor> parameters() const;
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() const;
  std::vector<std::pair<std::string, at::Tensor>> named_buffers() const;

  /// Forward, backward and, with an optimizer factory, the update, over one batch. All tensors of
  /// `inputs` and `target` have the same number of rows (dimension 0). Gradients are replaced.
  StepResult step(const Tensors& inputs, const at::Tensor& target, const Loss& loss,
                  const StepOptions& options = {});
  StepResult step(const at::Tensor& input, const at::Tensor& target, const Loss& loss,
                  const StepOptions& options = {});

  /// Evaluation: eval mode (each module's flag restored), no gradients, no RNG, no statistics
  /// moved.
  Tensors forward(const Tensors& inputs);
  at::Tensor forward(const at::Tensor& input);

  /// The layers, in order; to be used while no call runs.
  const std::vector<model::NamedLayer>& layers() const;
  /// The cut, once made (at the first step or forward, or at construction with a sample).
  const std::optional<plan::Cut>& cut() const;
  /// The profile behind it; empty unless the balance was measured.
  const std::optional<plan::Profile>& profile() const;
  std::vector<StageMemory> memory() const;
  void reset_peak();
  PipelineState state() const;
  void load_state(const PipelineState& state);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::runtime
