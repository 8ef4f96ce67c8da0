// Reader and writer of safetensors files: names, dtypes, shapes and byte ranges; no tensors.
// The format and what is checked: docs/formats/safetensors.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::formats {

/// What the reference implementation takes as a header at most; ours neither reads nor writes more.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

/// A dtype of the format.
struct SafetensorsDtype {
  std::string_view name;  // "F32"
  int bits = 0;           // of one element
};

/// Every dtype of the format.
std::span<const SafetensorsDtype> safetensors_dtypes();

/// @throws base::ConfigError for an unknown name (the nearest named).
SafetensorsDtype safetensors_dtype(std::string_view name);

/// Where a tensor lies. Elements are little-endian and row-major.
struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::uint64_t begin = 0;          // first byte, counted from Description::data_begin
  std::uint64_t end = 0;            // one past the last

  std::uint64_t num_bytes() const { return end - begin; }
};

/// What the header of a file says.
struct Description {
  std::vector<TensorEntry> tensors;  // in the order of their bytes: begin of each = end of the last
  std::map<std::string, std::string> metadata;  // "__metadata__"
  std::uint64_t data_begin = 0;                 // where the data starts in the file

  /// The tensor of that name, or nullptr. A scan: O(tensors).
  const TensorEntry* find(std::string_view name) const;
};

/// Checks and reads a header.
/// @param start the first bytes of the file, at least 8 + the header's length (more is ignored).
/// @param file_bytes size of the whole file.
/// @param where names the file in messages.
/// @throws base::IoError for whatever breaks the format's rules, naming the tensor and numbers.
/// Cost: O(header) in time and memory.
Description parse_safetensors(std::string_view start, std::uint64_t file_bytes,
                              std::string_view where);

/// An open file whose header was checked. Reading is thread-safe.
class SafetensorsFile {
 public:
  /// Reads only the header. @throws base::IoError as parse_safetensors, or if it cannot be read.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const Description& description() const { return description_; }

  /// Fills `into` with the bytes of a tensor from its byte `offset` on.
  /// @throws base::IoError if the file became shorter or cannot be read. The range must lie within
  /// the tensor.
  void read(const TensorEntry& tensor, std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  Description description_;
};

/// A tensor to write: contiguous, row-major bytes, lent for the call.
struct TensorBytes {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a file that appears only when it is complete (base::AtomicFile). Tensors of wider
/// elements come first, by name within a width, as the reference implementation orders them: so
/// each one is aligned to its elements. The same input gives the same bytes.
/// @throws base::ConfigError, before anything is written, for a name that is not UTF-8, empty,
/// "__metadata__" or given twice, an unknown dtype, a size that is not shape x dtype, or a header
/// above kMostHeaderBytes (more tensors than one file can name: write several). base::IoError if
/// the file cannot be written.
/// Cost: O(bytes) writes; memory: the header.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace headrace::formats
