// The executor: what the workers share, and how each of them walks its list.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/runtime/channel.h"
#include "headrace/runtime/failure.h"
#include "headrace/runtime/parameter_store.h"
#include "headrace/runtime/stage.h"
#include "headrace/runtime/step.h"

namespace headrace::runtime {

/// What a worker is doing now; written by the worker, read by whoever wants to tell.
struct Progress {
  std::atomic<const Cell*> cell{nullptr};
  std::atomic<std::int64_t> since_ns{0};  // when the cell, or the work after a wait, began
  std::atomic<bool> waiting{false};
  double wait_seconds = 0;   // of this step; written by the worker alone
  double total_seconds = 0;  // of this step

  void begin(const Cell* now);
  void touch();
  double seconds() const;
};

/// What a step came to, once every norm is known.
struct Verdict {
  double norm = 0;
  bool finite = true;
};

/// Thread rule: run(w) on worker w's thread; open(), close() and the rest by the caller of step().
class Executor {
 public:
  /// @param worker_of_stage which worker holds each stage.
  Executor(std::vector<std::unique_ptr<Stage>> stages, std::vector<int> worker_of_stage,
           std::shared_ptr<const ParameterStore> parameters, std::chrono::milliseconds limit);

  /// Makes channels, gates and stages ready for `step`.
  void open(Step& step);

  /// Walks the list of worker `worker`. The first exception of any worker is kept and ends the
  /// others' waits; nothing is thrown.
  void run(int worker, Step& step);

  /// Reports a failure and ends every wait.
  void fail(std::exception_ptr exception, const FailurePlace& place);
  const FirstFailure& failure() const { return failure_; }

  /// Frees what a failed step left behind.
  void clear();
  void zero_grad();
  void commit_statistics();
  static Verdict verdict(const Step& step);

  std::vector<std::unique_ptr<Stage>>& stages() { return stages_; }
  Progress& progress(int worker) { return *progress_.at(worker); }
  int num_workers() const { return static_cast<int>(progress_.size()); }
  std::chrono::milliseconds limit() const { return limit_; }
  /// Where a worker is, for messages.
  FailurePlace place_of(int worker) const;
  /// "worker 0 is in 0F3 (microbatch 3), layer '2', for 1.5 s" or "worker 0 is idle".
  std::string describe(int worker) const;

 private:
  void execute(const Cell& cell, Step& step, Progress& progress);
  void forward(const Cell& cell, Step& step, Progress& progress);
  void backward(const Cell& cell, Step& step, Progress& progress);
  void norm(const Cell& cell, Step& step, Progress& progress);
  void update(const Cell& cell, Step& step, Progress& progress);
  void sum_tied(const Stage& stage);
  base::CommError wait_error(int worker, const TimedOut& timeout) const;

  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<int> worker_of_stage_;
  std::shared_ptr<const ParameterStore> parameters_;
  const std::chrono::milliseconds limit_;
  std::vector<int> tied_stages_;
  std::vector<int> stage_of_layer_;
  std::vector<std::unique_ptr<Channel>> down_;  // down_[s]: activations into stage s
  std::vector<std::unique_ptr<Channel>> up_;    // up_[s]: gradients into stage s
  Gate ties_;
  Gate norms_;
  FirstFailure failure_;
  std::vector<std::unique_ptr<Progress>> progress_;

 public:
  /// Stages with uses of tied weights, ascending.
  const std::vector<int>& tied_stages() const { return tied_stages_; }
};

}  // namespace headrace::runtime
