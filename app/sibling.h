// The other program, the one with LibTorch.
#pragma once

#include <filesystem>

namespace headrace::app {

/// The folder of the running program.
std::filesystem::path program_folder();

/// Becomes headrace-torch, which lies in the same folder, with the same arguments and environment.
/// Returns only by throwing.
/// @throws base::ConfigError if it is not there (how to build it is told) or cannot be started.
[[noreturn]] void become_sibling(char** argv);

}  // namespace headrace::app
