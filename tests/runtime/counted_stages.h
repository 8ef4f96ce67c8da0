// A net whose activation bytes are known exactly, and what the published formulas say about the
// peak of each stage. Used by the test and by bench/stage_memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/runtime/pipeline.h"

namespace headrace::test {

/// K stages of L/K pairs (Linear(width, width), Sigmoid). A pair leaves one tensor [rows, width] of
/// fp32 per microbatch for its backward: the Sigmoid's result, which is also the next Linear's
/// saved input. Its bytes are the unit u of every formula. The rows are many beside the width, so
/// that weights and their gradients are small beside u.
struct CountedStages {
  int workers = 4;
  int pairs_per_stage = 96;  // L/K
  int microbatches = 32;     // M
  std::int64_t rows = 1024;  // of a microbatch
  std::int64_t width = 8;

  std::int64_t unit_bytes() const { return rows * width * 4; }
};

/// Peak bytes of each stage during one step in the steady state, counted by the allocator.
std::vector<std::int64_t> counted_peaks(const CountedStages& size, const std::string& schedule,
                                        runtime::Remat remat);

/// What the formula says for each stage, in units u. A boundary activation is counted at the stage
/// that made it, so the last stage, which makes none, has no term of N. With N = M u:
///   GPipe, never:        (L/K) N
///   GPipe, always:       N + (L/K) (N/M)
///   GPipe, except_last:  N + 2 (L/K) (N/M)
///   1F1B, never:         (K - s) (L/K) (N/M), at most M microbatches
/// Huang et al., "GPipe", NeurIPS 2019, section 2.3; Narayanan et al., "PipeDream", SOSP 2019.
std::vector<double> formula_units(const CountedStages& size, const std::string& schedule,
                                  runtime::Remat remat);

}  // namespace headrace::test
