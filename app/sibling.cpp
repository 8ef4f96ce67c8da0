#include "app/sibling.h"

#include <cerrno>
#include <iostream>
#include <system_error>

#include <unistd.h>

#include "headrace/base/error.h"

namespace headrace::app {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    throw base::Error("cannot tell where this program lies (/proc/self/exe: " + error.message() +
                      "); is /proc mounted?");
  }
  return program.parent_path();
}

void become_sibling(char** argv) {
  const fs::path sibling = program_folder() / "headrace-torch";
  if (!fs::exists(sibling)) {
    throw base::ConfigError("this command needs LibTorch: '" + sibling.string() +
                            "' is not there. Build it with: tools/build release headrace-torch");
  }
  std::cout.flush();
  ::execv(sibling.c_str(), argv);
  throw base::ConfigError("cannot start '" + sibling.string() +
                          "': " + std::generic_category().message(errno) +
                          ". Build it anew with: tools/build release headrace-torch");
}

}  // namespace headrace::app
