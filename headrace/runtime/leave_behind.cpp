#include "headrace/runtime/leave_behind.h"

namespace headrace::runtime {

void leave_behind(std::thread& thread, const base::LogSink& log, const std::string& what) {
  thread.detach();
  if (log) log(base::LogLevel::kError, "left behind: " + what);
}

}  // namespace headrace::runtime
