// A schedule is data: one ordered list of actions per worker, and which worker holds which stage.
#pragma once

#include <string>
#include <vector>

#include "headrace/schedule/action.h"

namespace headrace::schedule {

/// A plain value, immutable once built. Generators make it, passes rewrite it, validate proves it,
/// the executor and the simulator read it.
struct Schedule {
  std::string name;                          // as in the registry, or the CSV's file name
  int num_stages = 0;                        // K times the stages per worker
  int num_microbatches = 0;                  // M
  std::vector<std::vector<Action>> workers;  // one ordered list per worker
  std::vector<std::vector<int>> placement;   // placement[stage] = the workers that hold it

  int num_workers() const { return static_cast<int>(workers.size()); }
  bool operator==(const Schedule&) const = default;
};

}  // namespace headrace::schedule
