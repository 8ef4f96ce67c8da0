// Files: read whole within a limit, written so that a reader sees the old or the new one and never
// half of one, and appended to line by line. Every failure is an IoError with the path, the reason
// and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace headrace::base {

/// What a text file (recipe, profile, manifest, list) may have at most unless its reader says less.
inline constexpr std::uint64_t kMostTextBytes = 64ULL << 20U;

/// The bytes of a regular file.
/// @throws IoError if it is missing, a folder, a pipe or device, not readable, or longer than
///         `most_bytes` (checked before anything is allocated).
std::string read_file(const std::filesystem::path& path, std::uint64_t most_bytes = kMostTextBytes);

/// The same in pieces of at most 1 MiB, for files of any size.
void read_file_in_pieces(const std::filesystem::path& path,
                         const std::function<void(std::string_view)>& take);

/// A file that appears under its name only when it is complete: bytes go to a temporary file in
/// the same folder; `commit` syncs it, renames it and syncs the folder. Destroyed before that, it
/// leaves nothing behind.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  /// Once, as the last call. An existing file of that name is replaced.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// AtomicFile in one call.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// A file of lines. Each line goes out in one system call, so that a killed program leaves whole
/// lines only; after a failed write (disk full) the part written is taken back.
class LineFile {
 public:
  /// Opens for appending, creates if missing.
  explicit LineFile(std::filesystem::path path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// `line` without its newline.
  void append(std::string_view line);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Makes entries that were created or renamed in a folder survive a power cut.
void sync_folder(const std::filesystem::path& folder);

}  // namespace headrace::base
