// Exact min-max partition of a chain into contiguous parts: the dynamic program over (stages left,
// first layer), as in PipeDream (Harlap et al., arXiv 1806.03377, section 3.2) without replication.
//
//   best[k][i] = min over j of max(cost(i..j-1), best[k-1][j]):  layers i.. on k stages
#include "headrace/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace::plan {

namespace {

// Layers [first, end) added from the front: the same additions wherever a stage is priced, so that
// equal stages compare equal.
double sum(std::span<const double> costs, std::size_t first, std::size_t end) {
  double total = 0;
  for (std::size_t layer = first; layer < end; ++layer) {
    total += costs[layer];
  }
  return total;
}

void check(std::span<const double> costs, int num_stages) {
  if (num_stages < 1) {
    throw base::ConfigError("the number of stages must be at least 1, found " +
                            std::to_string(num_stages));
  }
  if (costs.size() < static_cast<std::size_t>(num_stages)) {
    throw base::ConfigError(std::to_string(costs.size()) + " layers cannot fill " +
                            std::to_string(num_stages) +
                            " stages: each holds at least one; take fewer stages");
  }
  for (std::size_t layer = 0; layer < costs.size(); ++layer) {
    if (!std::isfinite(costs[layer]) || costs[layer] < 0) {
      throw base::ConfigError("the cost of layer " + std::to_string(layer) +
                              " must be a finite number of at least 0, found " +
                              base::exact_text(costs[layer]));
    }
  }
  if (!std::isfinite(sum(costs, 0, costs.size()))) {
    throw base::ConfigError(
        "the layers' costs add up to more than a number can hold; give them in "
        "a larger unit");
  }
}

}  // namespace

Cut cut_by_cost(std::span<const double> layer_costs, int num_stages) {
  check(layer_costs, num_stages);
  const std::size_t num_layers = layer_costs.size();
  const auto stages = static_cast<std::size_t>(num_stages);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // best[k][i]: the dearest stage of the best cut of layers i.. into k stages.
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(num_layers + 1, kNever));
  best[0][num_layers] = 0;
  for (std::size_t k = 1; k <= stages; ++k) {
    for (std::size_t first = 0; first + k <= num_layers; ++first) {
      double stage = 0;
      for (std::size_t end = first + 1; end + k <= num_layers + 1; ++end) {
        stage += layer_costs[end - 1];
        best[k][first] = std::min(best[k][first], std::max(stage, best[k - 1][end]));
      }
    }
  }
  // The dearest stage is known: from the front, each stage takes as few layers as still reach it.
  Cut cut{{0}};
  const double dearest = best[stages][0];
  for (std::size_t k = stages; k >= 1; --k) {
    const auto first = static_cast<std::size_t>(cut.first.back());
    std::size_t end = first + 1;
    double stage = layer_costs[first];
    while (std::max(stage, best[k - 1][end]) > dearest) {
      stage += layer_costs[end++];
    }
    cut.first.push_back(static_cast<int>(end));
  }
  return cut;
}

Cut cut_by_hand(std::span<const int> layers_per_stage, int num_layers) {
  if (layers_per_stage.empty()) {
    throw base::ConfigError("layers per stage: the list is empty; give one number for each stage");
  }
  std::int64_t total = 0;
  Cut cut{{0}};
  for (std::size_t stage = 0; stage < layers_per_stage.size(); ++stage) {
    if (layers_per_stage[stage] < 1) {
      throw base::ConfigError("layers per stage: stage " + std::to_string(stage) + " gets " +
                              std::to_string(layers_per_stage[stage]) +
                              " layers; each stage holds at least one");
    }
    total += layers_per_stage[stage];
    cut.first.push_back(static_cast<int>(std::min<std::int64_t>(total, num_layers)));
  }
  if (total != num_layers) {
    throw base::ConfigError("layers per stage: " + base::join(layers_per_stage, " + ") + " = " +
                            std::to_string(total) + ", but the net has " +
                            std::to_string(num_layers) +
                            " layers; make the numbers add up to that");
  }
  return cut;
}

std::vector<double> stage_costs(const Cut& cut, std::span<const double> layer_costs) {
  HEADRACE_INVARIANT(!cut.first.empty() && cut.first.front() == 0 &&
                     static_cast<std::size_t>(cut.first.back()) == layer_costs.size());
  std::vector<double> costs;
  for (std::size_t stage = 0; stage + 1 < cut.first.size(); ++stage) {
    costs.push_back(sum(layer_costs, static_cast<std::size_t>(cut.first[stage]),
                        static_cast<std::size_t>(cut.first[stage + 1])));
  }
  return costs;
}

std::string to_text(const Cut& cut) {
  std::string text;
  for (int stage = 0; stage < cut.num_stages(); ++stage) {
    const int first = cut.first[static_cast<std::size_t>(stage)];
    const int last = cut.first[static_cast<std::size_t>(stage) + 1] - 1;
    text += stage == 0 ? "" : " | ";
    text += std::to_string(first);
    if (last != first) {
      text += "-" + std::to_string(last);
    }
  }
  return text;
}

}  // namespace headrace::plan
