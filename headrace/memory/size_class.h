// Which sizes of blocks there are: multiples of 64 bytes up to 256, then four to a power of two, so
// that at most a fifth of a block is unused. (The unused pages of a large block are never touched
// and cost nothing.)
//
//   class   0   1    2    3    4    5    6    7    8    9   10   11   12 ...
//   bytes  64 128  192  256  320  384  448  512  640  768  896 1024 1280 ...
#pragma once

#include <bit>
#include <cstddef>

namespace headrace::memory {

inline constexpr std::size_t kUnitBytes = 64;
inline constexpr int kNumClasses = 156;  // the last one has 2^46 bytes

/// Bytes of a block of class `c`.
constexpr std::size_t class_bytes(int c) {
  if (c < 4) {
    return kUnitBytes * static_cast<std::size_t>(c + 1);
  }
  const int exponent = c / 4 + 1;
  const std::size_t step = std::size_t{1} << (exponent - 2);
  return kUnitBytes * ((std::size_t{1} << exponent) + static_cast<std::size_t>(c % 4 + 1) * step);
}

inline constexpr std::size_t kMostBlockBytes = class_bytes(kNumClasses - 1);

/// The smallest class that holds `bytes`, which are 1 to kMostBlockBytes.
constexpr int class_of(std::size_t bytes) {
  const std::size_t last = (bytes - 1) / kUnitBytes;  // index of the last unit
  if (last < 4) {
    return static_cast<int>(last);
  }
  const int exponent = std::bit_width(last) - 1;
  const std::size_t step = (last >> (exponent - 2)) & 3U;
  return 4 * (exponent - 1) + static_cast<int>(step);
}

}  // namespace headrace::memory
