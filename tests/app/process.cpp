#include "tests/app/process.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace headrace::app {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) {
    all.push_back(text.data());
  }
  all.push_back(nullptr);
  return all;
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail("pipe");
  }
  return ends;
}

[[noreturn]] void become(const ProcessOptions& options, char* const* arguments,
                         char* const* environment, int out, int err) {
  ::alarm(options.seconds_allowed);  // survives exec: the kernel ends a program that hangs
  if (::dup2(out, STDOUT_FILENO) == STDOUT_FILENO && ::dup2(err, STDERR_FILENO) == STDERR_FILENO &&
      ::chdir(options.folder.c_str()) == 0) {
    ::execve(options.program.c_str(), arguments, environment);
  }
  ::_exit(127);
}

// Takes what there is; closes the pipe at its end.
void take(int& pipe, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t size = ::read(pipe, buffer.data(), buffer.size());
  if (size > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  } else if (size == 0 || errno != EINTR) {
    ::close(std::exchange(pipe, -1));
  }
}

// True if signals were sent to the process that no thread of it has taken yet.
bool has_pending_signals(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string key;
  std::string value;
  while (status >> key >> value) {
    if (key == "ShdPnd:") {
      return value.find_first_not_of('0') != std::string::npos;
    }
  }
  return false;  // it has ended
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  std::vector<std::string> argument_texts = {options.program.string()};
  argument_texts.insert(argument_texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment_texts = options.environment;
  environment_texts.emplace_back("PATH=/usr/bin:/bin");
  const std::vector<char*> argument_pointers = pointers(argument_texts);
  const std::vector<char*> environment_pointers = pointers(environment_texts);
  const std::array<int, 2> out = make_pipe();
  const std::array<int, 2> err = make_pipe();
  child_ = ::fork();
  if (child_ == 0) {
    become(options, argument_pointers.data(), environment_pointers.data(), out[1], err[1]);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
  if (child_ < 0) {
    fail("fork");
  }
}

Process::~Process() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    wait();
  }
  for (const int pipe : {out_, err_}) {
    if (pipe >= 0) {
      ::close(pipe);
    }
  }
}

// Waits for more output; false once both pipes have ended. The process's own alarm is the limit.
bool Process::read_more() {
  std::array<pollfd, 2> pipes{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};  // poll skips negative ones
  if (out_ < 0 && err_ < 0) {
    return false;
  }
  if (::poll(pipes.data(), pipes.size(), -1) < 0) {
    return errno == EINTR;
  }
  if (pipes[0].revents != 0) {
    take(out_, outcome_.out);
  }
  if (pipes[1].revents != 0) {
    take(err_, outcome_.err);
  }
  return true;
}

bool Process::says(const std::string& stream, const std::string& text) {
  while (stream.find(text) == std::string::npos) {
    if (!read_more()) {
      return false;
    }
  }
  return true;
}

void Process::signal(int number) const {
  ::kill(child_, number);
  for (int i = 0; i < 1000 && has_pending_signals(child_); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Outcome Process::wait() {
  while (read_more()) {
  }
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  outcome_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

Outcome run(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  return Process(arguments, options).wait();
}

}  // namespace headrace::app
