// The folder of one run: made, locked while in use, and the names of what lies in it
// (docs/formats/run-folder.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/record/recipe.h"

namespace headrace::record {

/// "step-00000100".
std::string checkpoint_name(std::int64_t step);

/// The step in such a name; nothing for any other name.
std::optional<std::int64_t> step_of_checkpoint(std::string_view name);

/// Owns a run's folder: two programs never write into the same one. The lock is the kernel's
/// (flock), so it goes with the process however that ends.
class RunFolder {
 public:
  /// Makes the recipe's run.folder, or runs/<run.name>-<time> (with -2, -3, ... if that is taken),
  /// locks it and writes config.toml, the effective recipe.
  /// @throws base::ConfigError if another process uses it (its id told), or it already holds a run.
  /// @throws base::IoError if it cannot be made or written.
  RunFolder(const Recipe& recipe, std::chrono::system_clock::time_point now);
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path plan() const { return path_ / "plan.json"; }
  std::filesystem::path profile() const { return path_ / "profile.json"; }
  std::filesystem::path log() const { return path_ / "log.txt"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  /// The folder of the checkpoint after `step` updates; not made here.
  std::filesystem::path checkpoint(std::int64_t step) const;

 private:
  void lock();

  std::filesystem::path path_;
  std::string checkpoint_folder_;
  int lock_ = -1;
};

}  // namespace headrace::record
