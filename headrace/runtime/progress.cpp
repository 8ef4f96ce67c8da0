// Who is where: what the messages of a failed or overdue step are made of.
#include "headrace/base/text.h"
#include "headrace/runtime/executor.h"
#include "headrace/schedule/text.h"

namespace headrace::runtime {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

std::string seconds_text(double seconds) {
  return base::fixed_text(seconds, 1) + " s";
}

}  // namespace

void Progress::begin(const Cell* now) {
  cell.store(now, std::memory_order_release);
  touch();
}

void Progress::touch() {
  since_ns.store(now_ns(), std::memory_order_relaxed);
}

double Progress::seconds() const {
  return static_cast<double>(now_ns() - since_ns.load(std::memory_order_relaxed)) * 1e-9;
}

void Executor::fail(std::exception_ptr exception, const FailurePlace& place) {
  if (!failure_.report(std::move(exception), place)) return;
  for (auto& channel : down_) channel->close();
  for (auto& channel : up_) channel->close();
  ties_.close();
  norms_.close();
}

FailurePlace Executor::place_of(int worker) const {
  FailurePlace place;
  place.worker = worker;
  const Cell* cell = progress_[worker]->cell.load(std::memory_order_acquire);
  if (cell == nullptr) return place;
  place.stage = cell->action.stage;
  place.action = schedule::to_text(cell->action);
  place.microbatch = cell->action.microbatch;
  const std::string* layer = stages_[place.stage]->current_layer();
  if (layer != nullptr) place.layer = *layer;
  return place;
}

std::string Executor::describe(int worker) const {
  if (progress_[worker]->cell.load(std::memory_order_acquire) == nullptr) {
    return "worker " + std::to_string(worker) + " is idle";
  }
  return to_text(place_of(worker)) + " for " + seconds_text(progress_[worker]->seconds());
}

base::CommError Executor::wait_error(int worker, const TimedOut& timeout) const {
  const Cell* cell = progress_[worker]->cell.load(std::memory_order_acquire);
  const int stage = cell->action.stage;
  const double limit = std::chrono::duration<double>(timeout.limit).count();
  std::string text = "waited longer than the limit of " + seconds_text(limit);
  if (cell->action.kind == schedule::Kind::kForward) {
    text += " for the activations of stage " + std::to_string(stage - 1);
  } else if (cell->action.kind == schedule::Kind::kBackward) {
    text += " for the gradients of stage " + std::to_string(stage + 1);
  } else {
    text += " for the other stages' gradients";
  }
  text += "; meanwhile:";
  for (int other = 0; other < num_workers(); ++other) {
    if (other != worker) text += "\n  " + describe(other);
  }
  return base::CommError(text + "\nraise PipelineOptions::timeout if a layer may take this long");
}

}  // namespace headrace::runtime
