// The errors of headrace. A message tells the rule, the numbers found, where (worker, stage,
// microbatch, name, shape, or file:line:column) and what to change.
#pragma once

#include <stdexcept>
#include <string>

namespace headrace::base {

/// Every error that headrace throws derives from this one.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the user asked for breaks a rule: options, sizes, layers, recipe. Exit code 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// An action list that cannot run. The message carries the drawn grid. Exit code 2.
class ScheduleError : public Error {
 public:
  using Error::Error;
};

/// A peer or a wait failed; the group (or the Pipeline) is unusable afterwards. Exit code 4.
class CommError : public Error {
 public:
  using Error::Error;
};

/// A file could not be read or written, or what it holds is not what it should be. Exit code 3.
class IoError : public Error {
 public:
  using Error::Error;
};

/// Stops with the place of a broken invariant of ours. Never reachable by user input.
[[noreturn]] void invariant_failed(const char* what, const char* file, int line);

}  // namespace headrace::base

/// Our own invariants only: what a user can cause is a ConfigError, ScheduleError or IoError.
#define HEADRACE_INVARIANT(condition)                                     \
  do {                                                                    \
    if (!(condition)) {                                                   \
      ::headrace::base::invariant_failed(#condition, __FILE__, __LINE__); \
    }                                                                     \
  } while (false)
