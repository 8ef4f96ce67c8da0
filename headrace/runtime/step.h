// What one call of step() or forward() hands to the workers, and what they bring back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/model/loss.h"
#include "headrace/runtime/program.h"

namespace headrace::runtime {

/// Shared by the workers while they run it; each field is written by one worker only, or by none.
struct Step {
  std::shared_ptr<const Program> program;
  bool training = true;

  std::vector<std::vector<at::Tensor>> inputs;  // per microbatch
  std::vector<at::Tensor> targets;              // per microbatch; empty in evaluation
  model::Loss loss;
  double total_weight = 1;  // W

  std::uint64_t seed = 0;
  std::uint64_t key_step = 0;          // the step that randomness is keyed by
  std::uint64_t first_microbatch = 0;  // global index of microbatch 0 (accumulating calls go on)

  std::optional<double> lr;
  double max_norm = 0;
  bool keep_outputs = false;

  // Written by the worker of the last stage.
  std::vector<at::Tensor> losses;                // per microbatch: loss sum / W
  std::vector<std::vector<at::Tensor>> outputs;  // per microbatch
  std::vector<double> loss_values;               // read at NORM

  // Written by the stage that owns the parameter, read after every NORM arrived.
  std::vector<double> squared_norms;
};

}  // namespace headrace::runtime
