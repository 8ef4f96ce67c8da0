#include "app/program.h"

#include <iostream>
#include <new>
#include <string>
#include <vector>

#include <unistd.h>

#include "headrace/base/error.h"

namespace headrace::app {

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const base::ConfigError*>(&error) != nullptr ||
      dynamic_cast<const base::ScheduleError*>(&error) != nullptr) {
    return kBadUsage;
  }
  if (dynamic_cast<const base::IoError*>(&error) != nullptr) {
    return kBadInput;
  }
  return dynamic_cast<const base::CommError*>(&error) != nullptr ? kPeerFailed : kFailed;
}

int run_program(int argc, char** argv, const std::function<int(const Command&)>& run) {
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    const Command command = parse_command_line(arguments, environ);
    int code = kDone;
    if (const auto* show = std::get_if<ShowText>(&command)) {
      std::cout << show->text;
    } else {
      code = run(command);
    }
    std::cout.flush();
    if (!std::cout) {
      std::cerr << "headrace: could not write to standard output; check the disk or the pipe\n";
      return kFailed;
    }
    return code;
  } catch (const std::bad_alloc&) {
    std::cerr << "headrace: out of memory; use a smaller model or batch, or more stages\n";
    return kFailed;
  } catch (const std::exception& error) {
    std::cout.flush();
    std::cerr << "headrace: " << error.what() << '\n';
    return exit_code_of(error);
  }
}

}  // namespace headrace::app
