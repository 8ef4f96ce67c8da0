// Seconds on a clock that never goes back.
#pragma once

#include <chrono>

namespace headrace::base {

/// Seconds since some fixed moment; only differences mean something.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace headrace::base
