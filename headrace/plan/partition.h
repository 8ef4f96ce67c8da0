// How a sequence of layers is cut into contiguous stages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headrace::plan {

/// A cut of L layers into K stages: stage s holds layers [first[s], first[s + 1]). first[0] = 0 and
/// first[K] = L. Every stage holds at least one layer.
struct Cut {
  std::vector<int> first;

  int num_stages() const { return static_cast<int>(first.size()) - 1; }
  bool operator==(const Cut&) const = default;
};

/// The contiguous cut whose dearest stage costs least (exact; ties go to the cut whose stages are
/// smallest from the front). Cost O(K L^2).
/// @throws base::ConfigError if there are fewer layers than stages (both told), a cost is negative
///         or not finite (the layer's index told), or their sum is not finite.
Cut cut_by_cost(std::span<const double> layer_costs, int num_stages);

/// By hand: the number of layers of each stage.
/// @throws base::ConfigError if one is not positive or their sum is not `num_layers`.
Cut cut_by_hand(std::span<const int> layers_per_stage, int num_layers);

/// Sum of the costs of each stage.
std::vector<double> stage_costs(const Cut& cut, std::span<const double> layer_costs);

/// "0-3 | 4-7 | 8-11"
std::string to_text(const Cut& cut);

}  // namespace headrace::plan
