// manifest.json: what a checkpoint holds, and the checksum of all of it (docs/formats/manifest.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace headrace::record {

struct ManifestTensor {
  std::string file;   // the shard that holds it: a plain file name of the same folder
  std::string dtype;  // as safetensors names it: "F32"
  std::vector<std::int64_t> shape;
  std::string sha256;  // of its bytes

  bool operator==(const ManifestTensor&) const = default;
};

struct ManifestFile {
  std::int64_t bytes = 0;
  std::string sha256;

  bool operator==(const ManifestFile&) const = default;
};

/// A plain value.
struct Manifest {
  std::int64_t step = 0;                       // updates made
  std::int64_t seed = 0;                       // debug.seed of the run
  std::string libtorch_version;                // "2.15.0"
  std::vector<std::int64_t> layers_per_stage;  // the layout at the time; any other can load it
  std::map<std::string, ManifestFile> files;
  std::map<std::string, ManifestTensor> tensors;

  bool operator==(const Manifest&) const = default;
};

inline constexpr std::int64_t kManifestFormatVersion = 1;

/// Fills `files` and `tensors` from safetensors shards that lie in `folder`.
/// @throws base::ConfigError if two shards hold a tensor of one name, base::IoError if one cannot
///         be read. Cost: two reads of every byte.
void describe_shards(Manifest& manifest, const std::filesystem::path& folder,
                     std::span<const std::string> shards);

std::string to_json(const Manifest& manifest);

/// Writes folder/manifest.json (temporary file, fsync, rename). Write it last: a folder without one
/// is no checkpoint.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

/// Reads folder/manifest.json. A shard's name must be a plain file name: nothing outside of the
/// folder is ever opened.
/// @throws base::IoError naming file, key and what is wrong.
Manifest read_manifest(const std::filesystem::path& folder);

/// Checks every byte: sizes, checksums of files and tensors, names, dtypes and shapes. Shards that
/// are links are refused.
/// @throws base::IoError naming the first file or tensor that is not what the manifest says.
void verify(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace headrace::record
