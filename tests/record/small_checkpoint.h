// A checkpoint of one test's own.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "headrace/formats/safetensors.h"
#include "headrace/record/manifest.h"

namespace headrace::record {

/// Shard name -> tensor name -> values (F32, one dimension).
using Shards = std::map<std::string, std::map<std::string, std::vector<float>>>;

inline void write_shard(const std::filesystem::path& path,
                        const std::map<std::string, std::vector<float>>& tensors) {
  std::vector<formats::TensorBytes> all;
  for (const auto& [name, values] : tensors) {
    all.push_back({name,
                   "F32",
                   {static_cast<std::int64_t>(values.size())},
                   std::as_bytes(std::span(values))});
  }
  formats::write_safetensors(path, all);
}

/// Writes shards and manifest; returns the manifest.
inline Manifest write_checkpoint(const std::filesystem::path& folder, const Shards& shards,
                                 std::int64_t step = 100) {
  std::filesystem::create_directories(folder);
  Manifest manifest;
  manifest.step = step;
  manifest.seed = 7;
  manifest.libtorch_version = "2.15.0";
  manifest.layers_per_stage = {3, 4};
  std::vector<std::string> names;
  for (const auto& [name, tensors] : shards) {
    write_shard(folder / name, tensors);
    names.push_back(name);
  }
  describe_shards(manifest, folder, names);
  write_manifest(folder, manifest);
  return manifest;
}

}  // namespace headrace::record
