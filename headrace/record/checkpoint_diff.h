// Two checkpoints compared to the bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace headrace::record {

/// How one tensor differs.
struct TensorDifference {
  enum class Kind { kOnlyInA, kOnlyInB, kDtype, kShape, kValues };

  std::string tensor;
  Kind kind = Kind::kValues;
  std::string detail;  // dtypes or shapes: "F32 and F64", "[2, 3] and [3, 2]"
  // Values only:
  std::int64_t first_index = 0;                  // row-major, of the first element with other bits
  std::int64_t different_elements = 0;           // with other bits
  std::optional<double> max_abs = std::nullopt;  // F32 and F64: the largest absolute difference
};

struct CheckpointDiff {
  std::string a;  // the checkpoint folders that were compared
  std::string b;
  std::int64_t tensors_compared = 0;  // of one name, dtype and shape in both
  std::vector<TensorDifference> differences;

  bool equal() const { return differences.empty(); }
};

/// The folder itself if it is a checkpoint (has a manifest.json); of a run, or of a folder of
/// checkpoints, the newest one by step number. Folders without a manifest are no checkpoints.
/// @throws base::IoError if there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& folder);

/// Compares the tensors of two checkpoints (or runs: their newest) bit by bit. Layouts, shards and
/// step numbers may differ; both are verified first.
/// @throws base::IoError if one cannot be read or is damaged.
/// Cost: three reads of every byte; memory 2 MiB.
CheckpointDiff diff_checkpoints(const std::filesystem::path& a, const std::filesystem::path& b);

/// A table of what differs, or one sentence.
std::string to_text(const CheckpointDiff& diff);

/// One JSON document, format_version 1 (docs/formats/manifest.md).
std::string to_json(const CheckpointDiff& diff);

}  // namespace headrace::record
