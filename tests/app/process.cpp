#include "tests/app/process.h"

#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/base/file.h"

#include "tests/base/temporary_folder.h"

namespace headrace::app {

namespace {

constexpr unsigned kSecondsAllowed = 20;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) {
    all.push_back(text.data());
  }
  all.push_back(nullptr);
  return all;
}

[[noreturn]] void become(const ProcessOptions& options, char** arguments, char** environment,
                         const std::string& out, const std::string& err) {
  const auto redirect = [](const std::string& path, int descriptor) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return file >= 0 && ::dup2(file, descriptor) == descriptor;
  };
  ::alarm(kSecondsAllowed);  // survives exec: the kernel ends a program that hangs
  if (redirect(out, STDOUT_FILENO) && redirect(err, STDERR_FILENO) &&
      ::chdir(options.folder.c_str()) == 0) {
    ::execve(options.program.c_str(), arguments, environment);
  }
  ::_exit(127);
}

}  // namespace

Outcome run(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  const base::TemporaryFolder folder;
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  std::vector<std::string> argument_texts = {options.program.string()};
  argument_texts.insert(argument_texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment_texts = options.environment;
  environment_texts.emplace_back("PATH=/usr/bin:/bin");
  const std::vector<char*> argument_pointers = pointers(argument_texts);
  const std::vector<char*> environment_pointers = pointers(environment_texts);
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (child == 0) {
    become(options, const_cast<char**>(argument_pointers.data()),
           const_cast<char**>(environment_pointers.data()), out, err);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), base::read_file(out),
          base::read_file(err)};
}

}  // namespace headrace::app
