// The names a user may type, and the generator behind each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/schedule/schedule.h"

namespace headrace::schedule {

/// What a generator needs to know.
struct Shape {
  int num_workers = 1;
  int num_microbatches = 1;
  int stages_per_worker = 0;  // 0 = the method's default
};

/// One method: its canonical name, other names for it, one sentence with its closed forms for
/// `headrace schedule list` (K workers, M microbatches), and its generator.
struct Method {
  std::string name;
  std::vector<std::string> aliases;
  std::string summary;
  Schedule (*generate)(const Shape&);
};

/// In the order in which they are listed.
const std::vector<Method>& methods();

/// The list of the named method (case-insensitive).
/// @throws base::ConfigError for an unknown name (the nearest named) or a shape that breaks the
///         method's rule (the legal values told), or of more than 1,000,000 actions.
Schedule generate(std::string_view name, const Shape& shape);

}  // namespace headrace::schedule
