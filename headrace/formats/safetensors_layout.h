// What the reader and the writer of safetensors share; not for others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace headrace::formats {

inline constexpr std::uint64_t kLengthBytes = 8;  // the header's length, little-endian
inline constexpr char kMetadataKey[] = "__metadata__";

/// Bytes of a dense tensor; nothing if a dimension is negative, the product does not fit 63 bits,
/// or the elements (of less than a byte each) do not fill whole bytes. O(dimensions).
std::optional<std::uint64_t> dense_bytes(std::span<const std::int64_t> shape, int bits);

}  // namespace headrace::formats
