// What both programs share: parse, run, and turn an error into one paragraph and an exit code.
#pragma once

#include <exception>
#include <functional>

#include "app/command_line.h"

namespace headrace::app {

/// How a program ends. By a signal: 128 + its number.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,  // the run failed, or diff found a difference
  kBadUsage = 2,
  kBadInput = 3,
  kPeerFailed = 4,
  kNonFinite = 5,
};

/// ConfigError and ScheduleError 2, IoError 3, CommError 4, anything else 1.
int exit_code_of(const std::exception& error);

/// Parses the command line and hands it to `run`, whose result is the exit code. An error goes to
/// stderr as "headrace: ...". Standard output that could not be written is a failure.
int run_program(int argc, char** argv, const std::function<int(const Command&)>& run);

}  // namespace headrace::app
