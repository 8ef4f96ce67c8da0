// The layouts that must all give the same numbers.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "headrace/runtime/pipeline.h"

namespace headrace::test {

struct Layout {
  int workers = 1;
  std::string schedule = "GPipe";
  runtime::Remat remat = runtime::Remat::kNever;

  friend std::ostream& operator<<(std::ostream& out, const Layout& layout);
};

/// Each number of workers with every schedule and every remat mode.
std::vector<Layout> layouts(const std::vector<int>& workers);

/// Options of that layout; the cut is made by parameters, so nothing has to be measured.
runtime::PipelineOptions options(const Layout& layout, int microbatches);

}  // namespace headrace::test
