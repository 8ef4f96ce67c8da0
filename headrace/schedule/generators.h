// One generator a method, each in its own .cpp, opened by its grid and its paper. They know nothing
// of tensors, transfers or updates: everything else is a pass.
#pragma once

#include <string>

#include "headrace/schedule/registry.h"
#include "headrace/schedule/schedule.h"

namespace headrace::schedule {

Schedule gpipe(const Shape& shape);
Schedule one_f_one_b(const Shape& shape);
Schedule sequential(const Shape& shape);

/// Empty lists for a method with one stage per worker: stage w at worker w.
/// @throws base::ConfigError unless `shape.stages_per_worker` is 0 or 1.
Schedule one_stage_per_worker(std::string name, const Shape& shape);

}  // namespace headrace::schedule
