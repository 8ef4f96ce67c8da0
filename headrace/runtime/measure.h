// Measures each layer on one real microbatch: what the partition is made from.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/base/log.h"
#include "headrace/model/sequence.h"
#include "headrace/plan/profile.h"

namespace headrace::runtime {

struct MeasureOptions {
  int repetitions = 5;  // the median counts; a layer slower than `enough_seconds` is run less
  double enough_seconds = 0.25;
  std::uint64_t seed = 0;                     // keys the randomness inside the layers
  std::atomic<int>* current_layer = nullptr;  // told which layer is being measured
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

/// The same on a thread of its own, with `intra_op_threads` LibTorch threads; the caller's setting
/// stays. A layer that does not come back within `limit` is left behind with that thread.
/// @throws base::CommError naming that layer.
std::vector<plan::LayerProfile> measure_layers_within(std::chrono::milliseconds limit,
                                                      int intra_op_threads,
                                                      const std::vector<model::NamedLayer>& layers,
                                                      const std::vector<at::Tensor>& microbatch,
                                                      const MeasureOptions& options,
                                                      const base::LogSink& log);

}  // namespace headrace::runtime
