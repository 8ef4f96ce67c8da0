// The first failure of a step wins: who failed, where, and the exception that the caller gets.
#pragma once

#include <exception>
#include <mutex>
#include <string>

namespace headrace::runtime {

/// Where a worker was.
struct FailurePlace {
  int worker = 0;
  int stage = 0;
  std::string action;
  int microbatch = -1;
  std::string layer;  // empty where no layer was running
};

/// "worker 1, stage 1, action 1F2 (microbatch 2), layer 'encoder.3'"
std::string to_text(const FailurePlace& place);

/// Keeps the first exception that is reported, with its place.
class FirstFailure {
 public:
  /// @returns true if this one is the first.
  bool report(std::exception_ptr exception, const FailurePlace& place);
  bool happened() const;
  /// Rethrows it with its place in front of its message: one of our kinds stays of its kind, any
  /// other exception becomes a base::Error that nests the original. Does nothing if none happened.
  void rethrow() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::exception_ptr exception_;
  FailurePlace place_;
};

}  // namespace headrace::runtime
