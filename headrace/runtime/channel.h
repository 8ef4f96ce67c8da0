// How tensors pass from one worker to another: keyed by microbatch, bounded, closable. In one
// process a tensor is handed over as it is, without a copy.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headrace::runtime {

using Clock = std::chrono::steady_clock;

/// What moves between two stages for one microbatch: activations (detached, with `needs_grad` per
/// value) on the way down, gradients (undefined where there is none) on the way back.
struct Packet {
  std::vector<at::Tensor> values;
  std::vector<bool> needs_grad;
};

/// Thrown out of a wait when the channel or gate is closed because another worker failed first.
struct Closed {};

/// Thrown out of a wait whose limit ran out; the worker turns it into an error that names both
/// ends.
struct TimedOut {
  std::chrono::milliseconds limit;
};

/// One direction of one boundary between stages.
class Channel {
 public:
  /// Empties and opens it for a step of `num_microbatches`, at most `bound` packets in flight.
  void open(int num_microbatches, int bound);

  /// Never waits: the bound is the most that the schedule can have in flight.
  void send(int microbatch, Packet packet);

  /// Waits for that microbatch's packet. Adds the time waited to `wait_seconds`.
  /// @throws Closed, TimedOut
  Packet receive(int microbatch, std::chrono::milliseconds limit, double& wait_seconds);

  /// Ends every wait, now and later, and frees what is in flight.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::optional<Packet>> slots_;
  int awaited_ = -1;  // the microbatch that the receiver waits for
  int in_flight_ = 0;
  int bound_ = 0;
  bool closed_ = true;
};

/// A count of arrivals that workers wait for: everybody's norm, every use of a tied weight.
class Gate {
 public:
  void open(int expected);
  void arrive();
  /// @throws Closed, TimedOut
  void wait(std::chrono::milliseconds limit, double& wait_seconds);
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable complete_;
  int expected_ = 0;
  int arrived_ = 0;
  bool closed_ = true;
};

}  // namespace headrace::runtime
