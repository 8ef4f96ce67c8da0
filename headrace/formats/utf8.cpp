#include "headrace/formats/utf8.h"

#include <cstddef>

namespace headrace::formats {
namespace {

// Length of the sequence that starts with `lead`, and the range of its second byte; 0 if none does.
struct Sequence {
  std::size_t length;
  unsigned char low;
  unsigned char high;
};

Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Sequence sequence = sequence_of(static_cast<unsigned char>(text[at]));
    if (sequence.length == 0 || sequence.length > text.size() - at) {
      return false;
    }
    for (std::size_t i = 1; i < sequence.length; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      const unsigned char low = i == 1 ? sequence.low : 0x80;
      const unsigned char high = i == 1 ? sequence.high : 0xBF;
      if (byte < low || byte > high) {
        return false;
      }
    }
    at += sequence.length;
  }
  return true;
}

}  // namespace headrace::formats
