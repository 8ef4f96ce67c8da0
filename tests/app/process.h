// The program under test, run as users run it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

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
  unsigned seconds_allowed = 20;              // then the kernel ends it (SIGALRM)
};

/// A program under way. The destructor kills it if it still runs.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Waits until standard output holds `text`. @returns false if it ends without.
  bool prints(const std::string& text) { return says(outcome_.out, text); }
  /// The same of standard error.
  bool warns(const std::string& text) { return says(outcome_.err, text); }
  /// Sends a signal and waits (at most ten seconds) until the process has taken it.
  void signal(int number) const;
  pid_t id() const { return child_; }
  /// Waits for its end.
  Outcome wait();

 private:
  bool read_more();
  bool says(const std::string& stream, const std::string& text);

  pid_t child_ = -1;
  int out_ = -1;
  int err_ = -1;
  Outcome outcome_;
};

/// Runs the program with these arguments to its end.
Outcome run(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

}  // namespace headrace::app
