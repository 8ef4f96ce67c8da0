#include "headrace/runtime/channel.h"

#include <utility>

#include "headrace/base/error.h"

namespace headrace::runtime {
namespace {

/// Waits on `signal` until `done()`, at most `limit`, and books the time.
template <typename Done>
void wait_for(std::condition_variable& signal, std::unique_lock<std::mutex>& lock,
              std::chrono::milliseconds limit, double& wait_seconds, const bool& closed,
              Done done) {
  if (!done() && !closed) {
    const Clock::time_point start = Clock::now();
    const bool in_time = signal.wait_until(lock, start + limit, [&] { return done() || closed; });
    wait_seconds += std::chrono::duration<double>(Clock::now() - start).count();
    if (!in_time) throw TimedOut{limit};
  }
  if (closed) throw Closed{};
}

}  // namespace

void Channel::open(int num_microbatches, int bound) {
  const std::lock_guard lock(mutex_);
  slots_.assign(num_microbatches, std::nullopt);
  awaited_ = -1;
  in_flight_ = 0;
  bound_ = bound;
  closed_ = false;
}

void Channel::send(int microbatch, Packet packet) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Closed{};
    HEADRACE_INVARIANT(!slots_.at(microbatch).has_value());
    HEADRACE_INVARIANT(in_flight_ < bound_);
    slots_[microbatch] = std::move(packet);
    ++in_flight_;
    notify = awaited_ == microbatch;
  }
  if (notify) arrived_.notify_one();
}

Packet Channel::receive(int microbatch, std::chrono::milliseconds limit, double& wait_seconds) {
  std::unique_lock lock(mutex_);
  if (closed_) throw Closed{};
  std::optional<Packet>& slot = slots_.at(microbatch);
  awaited_ = microbatch;
  wait_for(arrived_, lock, limit, wait_seconds, closed_, [&] { return slot.has_value(); });
  awaited_ = -1;
  --in_flight_;
  Packet packet = std::move(*slot);
  slot.reset();
  return packet;
}

void Channel::close() {
  std::vector<std::optional<Packet>> freed;  // tensors are freed outside the lock
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    // A receiver that is still inside wait_for holds a reference to its slot: empty, keep the
    // slots.
    for (auto& slot : slots_) freed.push_back(std::exchange(slot, std::nullopt));
  }
  arrived_.notify_all();
}

void Gate::open(int expected) {
  const std::lock_guard lock(mutex_);
  expected_ = expected;
  arrived_ = 0;
  closed_ = false;
}

void Gate::arrive() {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    notify = ++arrived_ == expected_;
  }
  if (notify) complete_.notify_all();
}

void Gate::wait(std::chrono::milliseconds limit, double& wait_seconds) {
  std::unique_lock lock(mutex_);
  wait_for(complete_, lock, limit, wait_seconds, closed_, [&] { return arrived_ >= expected_; });
}

void Gate::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  complete_.notify_all();
}

}  // namespace headrace::runtime
