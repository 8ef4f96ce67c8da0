// Which LibTorch this is: the one that was compiled against and the one that runs.
#pragma once

#include <string>

namespace headrace::train {

/// "2.15.0": of the headers.
std::string libtorch_compiled();

/// "2.15.0": of the library that is loaded, without build tags; empty if it does not tell.
std::string libtorch_running();

/// @throws base::ConfigError if the two differ: LibTorch's C++ interface is not stable between
///         releases.
void check_libtorch();

}  // namespace headrace::train
