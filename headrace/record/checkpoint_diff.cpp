#include "headrace/record/checkpoint_diff.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/json.h"
#include "headrace/base/table.h"
#include "headrace/base/text.h"
#include "headrace/formats/safetensors.h"
#include "headrace/record/manifest.h"
#include "headrace/record/run_folder.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;
using Kind = TensorDifference::Kind;

constexpr std::size_t kPieceBytes = 1U << 20U;

// An open, verified checkpoint.
class Checkpoint {
 public:
  explicit Checkpoint(const fs::path& folder) : manifest_(read_manifest(folder)) {
    verify(folder, manifest_);
    for (const auto& [name, file] : manifest_.files) {
      shards_[name] = std::make_unique<formats::SafetensorsFile>(folder / name);
      for (const formats::TensorEntry& entry : shards_[name]->description().tensors) {
        entries_[entry.name] = {shards_[name].get(), &entry};
      }
    }
  }

  const std::map<std::string, ManifestTensor>& tensors() const { return manifest_.tensors; }

  std::uint64_t num_bytes(const std::string& tensor) const {
    return entries_.at(tensor).second->num_bytes();
  }

  void read(const std::string& tensor, std::uint64_t offset, std::span<std::byte> into) const {
    const auto& [file, entry] = entries_.at(tensor);
    file->read(*entry, offset, into);
  }

 private:
  Manifest manifest_;
  std::map<std::string, std::unique_ptr<formats::SafetensorsFile>> shards_;
  std::map<std::string, std::pair<const formats::SafetensorsFile*, const formats::TensorEntry*>>
      entries_;
};

template <typename Number>
double abs_difference(const std::byte* a, const std::byte* b) {
  Number x;
  Number y;
  std::memcpy(&x, a, sizeof(Number));
  std::memcpy(&y, b, sizeof(Number));
  return std::fabs(static_cast<double>(x) - static_cast<double>(y));
}

double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
}

// Folds one piece into the difference. `first` is the index of the piece's first element.
void compare_piece(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t width,
                   std::int64_t first, const std::string& dtype, TensorDifference& difference) {
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) {
    return;
  }
  for (std::size_t at = 0; at + width <= a.size(); at += width) {
    if (std::memcmp(&a[at], &b[at], width) == 0) {
      continue;
    }
    if (difference.different_elements++ == 0) {
      difference.first_index = first + static_cast<std::int64_t>(at / width);
    }
    if (dtype == "F32") {
      difference.max_abs =
          larger(difference.max_abs.value_or(0), abs_difference<float>(&a[at], &b[at]));
    } else if (dtype == "F64") {
      difference.max_abs =
          larger(difference.max_abs.value_or(0), abs_difference<double>(&a[at], &b[at]));
    }
  }
}

std::optional<TensorDifference> compare_values(const std::string& name, const std::string& dtype,
                                               const Checkpoint& a, const Checkpoint& b) {
  TensorDifference difference{.tensor = name, .kind = Kind::kValues, .detail = ""};
  // Elements below a byte are compared and counted as the bytes that hold them.
  const auto width =
      static_cast<std::size_t>(std::max(8, formats::safetensors_dtype(dtype).bits) / 8);
  const std::size_t piece = kPieceBytes / width * width;
  std::vector<std::byte> buffer_a(piece);
  std::vector<std::byte> buffer_b(piece);
  const std::uint64_t bytes = a.num_bytes(name);
  for (std::uint64_t at = 0; at < bytes; at += piece) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(piece, bytes - at));
    a.read(name, at, std::span(buffer_a).first(length));
    b.read(name, at, std::span(buffer_b).first(length));
    compare_piece(std::span(buffer_a).first(length), std::span(buffer_b).first(length), width,
                  static_cast<std::int64_t>(at / width), dtype, difference);
  }
  return difference.different_elements == 0 ? std::nullopt : std::optional(difference);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> parts;
  for (const std::int64_t size : shape) {
    parts.push_back(std::to_string(size));
  }
  return std::string("[").append(base::join(parts)).append("]");
}

TensorDifference of_kind(const std::string& name, Kind kind, std::string detail = "") {
  return {.tensor = name, .kind = kind, .detail = std::move(detail)};
}

std::string kind_text(Kind kind) {
  switch (kind) {
    case Kind::kOnlyInA:
      return "only_in_a";
    case Kind::kOnlyInB:
      return "only_in_b";
    case Kind::kDtype:
      return "dtype";
    case Kind::kShape:
      return "shape";
    default:
      return "values";
  }
}

}  // namespace

fs::path find_checkpoint(const fs::path& folder) {
  constexpr int kMostEntries = 1'000'000;
  if (fs::exists(folder / "manifest.json")) {
    return folder;
  }
  fs::path newest;
  std::int64_t newest_step = -1;
  for (const fs::path& place : {folder / "checkpoints", folder}) {
    std::error_code error;
    fs::directory_iterator entry(place, error);
    for (int looked = 0; !error && entry != fs::directory_iterator() && looked < kMostEntries;
         ++looked, entry.increment(error)) {
      const auto step = step_of_checkpoint(entry->path().filename().string());
      if (step && *step > newest_step && fs::exists(entry->path() / "manifest.json")) {
        newest_step = *step;
        newest = entry->path();
      }
    }
  }
  if (newest.empty()) {
    throw base::IoError("no checkpoint in '" + folder.string() +
                        "': neither a manifest.json, nor checkpoints/step-* with one; give a "
                        "checkpoint's folder or a run's");
  }
  return newest;
}

CheckpointDiff diff_checkpoints(const fs::path& a_folder, const fs::path& b_folder) {
  CheckpointDiff diff;
  const fs::path a_path = find_checkpoint(a_folder);
  const fs::path b_path = find_checkpoint(b_folder);
  diff.a = a_path.string();
  diff.b = b_path.string();
  const Checkpoint a(a_path);
  const Checkpoint b(b_path);
  for (const auto& [name, tensor] : a.tensors()) {
    const auto found = b.tensors().find(name);
    if (found == b.tensors().end()) {
      diff.differences.push_back(of_kind(name, Kind::kOnlyInA));
      continue;
    }
    const ManifestTensor& other = found->second;
    if (tensor.dtype != other.dtype) {
      diff.differences.push_back(of_kind(name, Kind::kDtype, tensor.dtype + " and " + other.dtype));
    } else if (tensor.shape != other.shape) {
      diff.differences.push_back(of_kind(
          name, Kind::kShape, shape_text(tensor.shape) + " and " + shape_text(other.shape)));
    } else {
      ++diff.tensors_compared;
      if (auto values = compare_values(name, tensor.dtype, a, b)) {
        diff.differences.push_back(std::move(*values));
      }
    }
  }
  for (const auto& [name, tensor] : b.tensors()) {
    if (a.tensors().find(name) == a.tensors().end()) {
      diff.differences.push_back(of_kind(name, Kind::kOnlyInB));
    }
  }
  return diff;
}

std::string to_text(const CheckpointDiff& diff) {
  const std::string compared = std::to_string(diff.tensors_compared) + " tensors compared";
  if (diff.equal()) {
    return "equal to the bit: " + diff.a + " and " + diff.b + " (" + compared + ")\n";
  }
  base::Table table({"tensor", "difference", "first index", "elements", "max abs", "detail"});
  for (const TensorDifference& difference : diff.differences) {
    const bool values = difference.kind == Kind::kValues;
    table.add({difference.tensor, kind_text(difference.kind),
               values ? std::to_string(difference.first_index) : "",
               values ? std::to_string(difference.different_elements) : "",
               difference.max_abs ? base::exact_text(*difference.max_abs) : "", difference.detail});
  }
  return "a: " + diff.a + "\nb: " + diff.b + "\n" + compared + ", " +
         std::to_string(diff.differences.size()) + " differences\n" + table.to_text();
}

std::string to_json(const CheckpointDiff& diff) {
  nlohmann::json differences = nlohmann::json::array();
  for (const TensorDifference& difference : diff.differences) {
    nlohmann::json item = {{"tensor", difference.tensor},
                           {"difference", kind_text(difference.kind)}};
    if (!difference.detail.empty()) {
      item["detail"] = difference.detail;
    }
    if (difference.kind == Kind::kValues) {
      item["first_index"] = difference.first_index;
      item["different_elements"] = difference.different_elements;
    }
    if (difference.max_abs) {
      item["max_abs_difference"] = *difference.max_abs;
      if (!std::isfinite(*difference.max_abs)) {
        item["nonfinite"] = true;
      }
    }
    differences.push_back(std::move(item));
  }
  return base::json_text({{"format_version", 1},
                          {"a", diff.a},
                          {"b", diff.b},
                          {"equal", diff.equal()},
                          {"tensors_compared", diff.tensors_compared},
                          {"differences", std::move(differences)}});
}

}  // namespace headrace::record
