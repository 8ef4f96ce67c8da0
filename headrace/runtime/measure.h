// Measures each layer on one real microbatch: what the partition is made from.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/model/sequence.h"
#include "headrace/plan/profile.h"

namespace headrace::runtime {

struct MeasureOptions {
  int repetitions = 5;  // the fastest counts; a layer slower than `enough_seconds` is run less
  double enough_seconds = 0.25;
  std::uint64_t seed = 0;  // keys the randomness inside the layers
};

/// Runs every layer forward and backward on the calling thread, alone, and takes its times and
/// bytes. Generators, buffers and gradients are as before afterwards; nothing is trained.
///
/// Input-gradient seconds: a backward towards the layer's inputs only. Weight-gradient seconds:
/// what a full backward takes beyond that. Activation bytes: what the forward allocates and leaves
/// live for the backward when its outputs are dropped (0 unless memory::allocator_installed()).
std::vector<plan::LayerProfile> measure_layers(const std::vector<model::NamedLayer>& layers,
                                               const std::vector<at::Tensor>& microbatch,
                                               const MeasureOptions& options = {});

}  // namespace headrace::runtime
