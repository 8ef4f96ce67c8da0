// Does a stage hold what the formulas say, and nothing else? Counted peak bytes of each stage
// beside GPipe's and PipeDream's formulas. Bytes are counted, not timed: one run tells. See
// README.md.
#include <string>

#include "bench/samples.h"
#include "tests/runtime/counted_stages.h"

namespace {

using headrace::bench::fixed;
using headrace::runtime::Remat;
using headrace::test::CountedStages;

struct Method {
  const char* schedule;
  Remat remat;
  const char* remat_name;
  const char* formula;
};

constexpr Method kMethods[]{
    {"GPipe", Remat::kNever, "never", "(L/K) N"},
    {"GPipe", Remat::kAlways, "always", "N + (L/K)(N/M)"},
    {"GPipe", Remat::kExceptLast, "except_last", "N + 2 (L/K)(N/M)"},
    {"1F1B", Remat::kNever, "never", "(K - s)(L/K)(N/M)"},
};

}  // namespace

int main() {
  const CountedStages size;
  std::printf(
      "K = %d stages of L/K = %d pairs (Linear, Sigmoid), M = %d, N = M u, u = %ld bytes (%ld rows "
      "of %ld floats)\n\n",
      size.workers, size.pairs_per_stage, size.microbatches, size.unit_bytes(), size.rows,
      size.width);
  headrace::bench::print_header(
      {"schedule", "remat", "formula", "stage", "formula, u", "counted, u", "counted / formula"});
  for (const Method& method : kMethods) {
    const auto counted = counted_peaks(size, method.schedule, method.remat);
    const auto formula = formula_units(size, method.schedule, method.remat);
    for (std::size_t s = 0; s < counted.size(); ++s) {
      const double units = static_cast<double>(counted[s]) / static_cast<double>(size.unit_bytes());
      const auto [least, most] = formula[s];
      const std::string range =
          least < most ? fixed(least, 0) + " to " + fixed(most, 0) : fixed(most, 0);
      headrace::bench::print_row({method.schedule, method.remat_name, method.formula,
                                  std::to_string(s), range, fixed(units, 2),
                                  fixed(units / least, 3)});
    }
  }
  return 0;
}
