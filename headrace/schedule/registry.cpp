#include "headrace/schedule/registry.h"

#include <algorithm>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/schedule/generators.h"

namespace headrace::schedule {

namespace {

constexpr std::int64_t kMostActions = 1'000'000;

const Method& find(std::string_view name) {
  const std::string wanted = base::lower_case(name);
  std::vector<std::string> names;
  std::vector<std::string> canonical;
  for (const Method& method : methods()) {
    canonical.push_back(method.name);
    names.push_back(method.name);
    names.insert(names.end(), method.aliases.begin(), method.aliases.end());
    for (auto known = names.end() - 1 - static_cast<std::ptrdiff_t>(method.aliases.size());
         known != names.end(); ++known) {
      if (base::lower_case(*known) == wanted) {
        return method;
      }
    }
  }
  throw base::ConfigError("unknown schedule " + base::quote(name) +
                          base::did_you_mean(name, names) + "; known: " + base::join(canonical));
}

void check(const Method& method, const Shape& shape) {
  const auto refuse = [&](const std::string& what, int found) {
    throw base::ConfigError(method.name + ": the number of " + what +
                            " must be at least 1, found " + std::to_string(found));
  };
  if (shape.num_workers < 1) {
    refuse("workers", shape.num_workers);
  }
  if (shape.num_microbatches < 1) {
    refuse("microbatches", shape.num_microbatches);
  }
  if (shape.stages_per_worker < 0) {
    refuse("stages per worker", shape.stages_per_worker);
  }
  const std::int64_t stages_per_worker = std::max(1, shape.stages_per_worker);
  // Each factor first: the product of three large numbers would overflow.
  const std::int64_t per_worker = 2LL * shape.num_microbatches;
  const std::int64_t num_stages = shape.num_workers * stages_per_worker;
  if (num_stages > kMostActions || per_worker > kMostActions ||
      num_stages * per_worker > kMostActions) {
    throw base::ConfigError(method.name + ": " + std::to_string(shape.num_workers) + " workers x " +
                            std::to_string(stages_per_worker) + " stages each x " +
                            std::to_string(shape.num_microbatches) +
                            " microbatches x 2 is more than " + base::thousands(kMostActions) +
                            " actions; take fewer microbatches or workers");
  }
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> all{
      {"GPipe",
       {},
       "all forwards, then all backwards; bubble (K-1)/(M+K-1), M microbatches live per stage",
       &gpipe},
      {"1F1B",
       {"PipeDream-flush", "OneFOneB"},
       "one forward, one backward in turn; bubble (K-1)/(M+K-1), min(K-s, M) live at stage s",
       &one_f_one_b},
      {"Sequential",
       {},
       "one microbatch at a time, the baseline; bubble (K-1)/K, one microbatch live per stage",
       &sequential},
  };
  return all;
}

Schedule generate(std::string_view name, const Shape& shape) {
  const Method& method = find(name);
  check(method, shape);
  return method.generate(shape);
}

Schedule one_stage_per_worker(std::string name, const Shape& shape) {
  if (shape.stages_per_worker > 1) {
    throw base::ConfigError(name + ": a worker holds one stage in this method, found " +
                            std::to_string(shape.stages_per_worker) +
                            " stages per worker; leave it out or set 1");
  }
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.num_stages = shape.num_workers;
  schedule.num_microbatches = shape.num_microbatches;
  schedule.workers.resize(static_cast<std::size_t>(shape.num_workers));
  for (int worker = 0; worker < shape.num_workers; ++worker) {
    schedule.placement.push_back({worker});
  }
  return schedule;
}

}  // namespace headrace::schedule
