// The names of the modes of rematerialisation, as recipes and plan files spell them.
#include <array>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/schedule/passes.h"

namespace headrace::schedule {
namespace {

constexpr std::array kNames = {std::pair{Remat::kNever, "never"},
                               std::pair{Remat::kExceptLast, "except_last"},
                               std::pair{Remat::kAlways, "always"}};

}  // namespace

std::string remat_name(Remat remat) {
  for (const auto& [mode, name] : kNames) {
    if (mode == remat) return name;
  }
  throw base::ConfigError("rematerialisation has the modes 0 to 2, found " +
                          std::to_string(static_cast<int>(remat)));
}

Remat remat_from_text(std::string_view text) {
  for (const auto& [mode, name] : kNames) {
    if (text == name) return mode;
  }
  throw base::ConfigError(R"(rematerialisation is "never", "except_last" or "always", not ")" +
                          std::string(text) + '"');
}

}  // namespace headrace::schedule
