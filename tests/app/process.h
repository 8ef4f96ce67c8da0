// The program under test, run as users run it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headrace::app {

/// How a process ended and what it said.
struct Outcome {
  int code = -1;  // exit code; 128 + number for a signal
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::filesystem::path program = HEADRACE_PROGRAM;
  std::filesystem::path folder = ".";         // where it runs
  std::vector<std::string> environment = {};  // besides PATH: "NAME=value"
};

/// Runs the program with these arguments; kills it after 20 seconds.
Outcome run(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

}  // namespace headrace::app
