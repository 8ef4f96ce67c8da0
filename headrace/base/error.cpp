#include "headrace/base/error.h"

namespace headrace::base {

void invariant_failed(const char* what, const char* file, int line) {
  throw std::logic_error(std::string("headrace: broken invariant ") + what + " at " + file + ":" +
                         std::to_string(line) + "; please report this");
}

}  // namespace headrace::base
