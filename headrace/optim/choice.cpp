#include "headrace/optim/choice.h"

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace::optim {

std::size_t choose(std::string_view what, const std::string& name,
                   const std::vector<std::string>& choices) {
  const std::string wanted = base::lower_case(name);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (base::lower_case(choices[i]) == wanted) {
      return i;
    }
  }
  throw base::ConfigError("unknown " + std::string(what) + " " + base::quote(name) +
                          base::did_you_mean(name, choices) + "; allowed: " + base::join(choices));
}

}  // namespace headrace::optim
