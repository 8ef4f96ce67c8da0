// The one place where a thread is left to itself.
#pragma once

#include <string>
#include <thread>

#include "headrace/base/log.h"

namespace headrace::runtime {

/// Detaches a thread that is stuck in a layer, and logs it. The thread must own, by shared pointers
/// or copies, all that it may still touch.
void leave_behind(std::thread& thread, const base::LogSink& log, const std::string& what);

}  // namespace headrace::runtime
