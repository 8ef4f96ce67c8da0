#include "tests/support/layouts.h"

#include <ostream>

namespace headrace::test {

using runtime::Remat;

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  const char* remat = layout.remat == Remat::kNever    ? "never"
                      : layout.remat == Remat::kAlways ? "always"
                                                       : "except_last";
  return out << "K=" << layout.workers << ' ' << layout.schedule << ", recomputation " << remat;
}

std::vector<Layout> layouts(const std::vector<int>& workers) {
  std::vector<Layout> all;
  for (const int k : workers) {
    for (const char* schedule : {"Sequential", "GPipe", "1F1B"}) {
      for (const Remat remat : {Remat::kNever, Remat::kExceptLast, Remat::kAlways}) {
        all.push_back({k, schedule, remat});
      }
    }
  }
  return all;
}

runtime::PipelineOptions options(const Layout& layout, int microbatches) {
  runtime::PipelineOptions options(layout.workers);
  options.microbatches(microbatches)
      .schedule(layout.schedule)
      .remat(layout.remat)
      .balance(runtime::Balance::kParameters);
  return options;
}

}  // namespace headrace::test
