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
  int pairs_per_stage = 128;  // L/K
  int microbatches = 32;      // M
  std::int64_t rows = 1024;   // of a microbatch
  std::int64_t width = 8;

  std::int64_t unit_bytes() const { return rows * width * 4; }
};

/// Peak bytes of each stage during one step in the steady state, counted by the allocator. With
/// remat the last stage ends its forwards only when every other stage has recomputed its first
/// microbatch, as stages of equal speed do: the peak does not depend on the machine's load.
std::vector<std::int64_t> counted_peaks(const CountedStages& size, const std::string& schedule,
                                        runtime::Remat remat);

/// In units u.
struct Bytes {
  double least = 0;
  double most = 0;
};

/// What the formula says for each stage. With N = M u:
///   GPipe, never:        (L/K) N
///   GPipe, always:       N + (L/K) (N/M)
///   GPipe, except_last:  N + 2 (L/K) (N/M)
///   1F1B, never:         (K - s) (L/K) (N/M), at most M microbatches
/// The term N is the boundary: activations are counted at the stage that made them, until the next
/// stage's backward has turned each into a gradient, which is counted there. The last stage makes
/// none of the activations: of N it has as many gradients as the stage before has not yet taken,
/// from none to M.
/// Huang et al., "GPipe", NeurIPS 2019, section 2.3; Narayanan et al., "PipeDream", SOSP 2019.
std::vector<Bytes> formula_units(const CountedStages& size, const std::string& schedule,
                                 runtime::Remat remat);

}  // namespace headrace::test
