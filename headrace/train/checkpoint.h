// Weights as files: safetensors shards and a manifest, complete or invisible.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/record/manifest.h"

namespace headrace::train {

/// What is saved: parameters and buffers by name.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes `tensors` into the folder `target`, which appears under its name only when every byte of
/// it is on the disk: shards and manifest go to a temporary folder beside it, which is then
/// renamed.
/// @param manifest step, seed, version and layout; files and tensors are filled in.
/// @throws base::ConfigError if `target` exists, base::IoError if it cannot be written (nothing is
///         left behind then).
/// Memory: a copy of the tensors that are not contiguous on the CPU.
void save_checkpoint(const std::filesystem::path& target, const NamedTensors& tensors,
                     record::Manifest manifest);

}  // namespace headrace::train
