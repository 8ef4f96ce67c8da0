#include "tests/runtime/counted_stages.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace headrace::test {

using runtime::Pipeline;
using runtime::PipelineOptions;
using runtime::Remat;

namespace {

/// Where the last stage waits for the others' first recomputation.
class Meeting {
 public:
  void arrive() {
    {
      const std::lock_guard lock(mutex_);
      ++arrived_;
    }
    changed_.notify_all();
  }
  void wait_for(int arrivals) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return arrived_ >= arrivals; })) {
      throw std::runtime_error(std::to_string(arrived_) + " of " + std::to_string(arrivals) +
                               " stages began to recompute within 60 s");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
};

/// The end of a stage: returns its input, and tells when that is the step's first recomputation.
class StageEnd : public torch::nn::Module {
 public:
  StageEnd(std::shared_ptr<Meeting> meeting, int calls_per_step, int microbatches)
      : meeting_(std::move(meeting)), calls_per_step_(calls_per_step), first_(microbatches) {}

  at::Tensor forward(const at::Tensor& x) {
    if (calls_++ % calls_per_step_ == first_) meeting_->arrive();
    return x;
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int calls_per_step_;
  int first_;
  int calls_ = 0;
};

int calls_per_step(int microbatches, Remat remat) {
  switch (remat) {
    case Remat::kAlways:
      return 2 * microbatches;
    case Remat::kExceptLast:
      return 2 * microbatches - 1;
    default:
      return microbatches;
  }
}

torch::nn::Sequential make_net(const CountedStages& size, const std::shared_ptr<Meeting>& meeting,
                               int calls) {
  torch::nn::Sequential net;
  for (int s = 0; s < size.workers; ++s) {
    for (int i = 0; i < size.pairs_per_stage; ++i) {
      net->push_back(torch::nn::Linear(size.width, size.width));
      net->push_back(torch::nn::Sigmoid());
    }
    net->push_back(std::make_shared<StageEnd>(meeting, calls, size.microbatches));
  }
  return net;
}

}  // namespace

std::vector<std::int64_t> counted_peaks(const CountedStages& size, const std::string& schedule,
                                        Remat remat) {
  const auto meeting = std::make_shared<Meeting>();
  const int calls = calls_per_step(size.microbatches, remat);
  Pipeline pipeline(
      make_net(size, meeting, calls),
      PipelineOptions(size.workers)
          .microbatches(size.microbatches)
          .schedule(schedule)
          .remat(remat)
          .layers_per_stage(std::vector<int>(size.workers, 2 * size.pairs_per_stage + 1)));
  runtime::Loss loss = model::mse();
  // Shared, since each step has its own copy of the loss.
  loss.sum = [&size, remat, meeting, calls, call = std::make_shared<int>(0), sum = loss.sum](
                 const model::Tensors& outputs, const at::Tensor& target) {
    const int step = *call / calls;
    if (remat != Remat::kNever && *call % calls == size.microbatches - 1) {
      meeting->wait_for((step + 1) * size.workers - 1);  // all but this stage itself
    }
    ++*call;
    return sum(outputs, target);
  };
  const at::Tensor input = at::randn({size.microbatches * size.rows, size.width});
  const at::Tensor target = at::randn({size.microbatches * size.rows, size.width});
  pipeline.step(input, target, loss);
  pipeline.reset_peak();
  pipeline.step(input, target, loss);
  std::vector<std::int64_t> peaks;
  for (const runtime::StageMemory& stage : pipeline.memory()) peaks.push_back(stage.peak_bytes);
  return peaks;
}

std::vector<Bytes> formula_units(const CountedStages& size, const std::string& schedule,
                                 Remat remat) {
  const double pairs = size.pairs_per_stage;
  const double boundary = size.microbatches;  // N
  std::vector<Bytes> units;
  for (int s = 0; s < size.workers; ++s) {
    const int live =
        schedule == "1F1B" ? std::min(size.workers - s, size.microbatches) : size.microbatches;
    const double layers = remat == Remat::kNever    ? live * pairs
                          : remat == Remat::kAlways ? pairs
                                                    : 2 * pairs;
    const double most = remat == Remat::kNever ? layers : boundary + layers;
    units.push_back({s + 1 < size.workers ? most : layers, most});
  }
  return units;
}

}  // namespace headrace::test
