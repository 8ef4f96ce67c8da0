#include "headrace/train/utf8.h"

#include <cstddef>
#include <cstdint>

namespace headrace::train {
namespace {

struct Step {
  char32_t point;      // kReplacement where ill-formed
  std::size_t length;  // bytes consumed, at least 1
  bool valid;
};

/// The bounds of the second byte are what rules out overlong forms, surrogates and > U+10FFFF.
struct Lead {
  int continuation;
  std::uint8_t second_low;
  std::uint8_t second_high;
};

Lead lead_of(std::uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

Step next(std::string_view text, std::size_t at) {
  const auto first = static_cast<std::uint8_t>(text[at]);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = lead_of(first);
  if (lead.continuation == 0) return {kReplacement, 1, false};
  char32_t point = first & (0x3F >> lead.continuation);
  std::size_t length = 1;
  for (int i = 0; i < lead.continuation; ++i, ++length) {
    if (at + length >= text.size()) return {kReplacement, length, false};
    const auto byte = static_cast<std::uint8_t>(text[at + length]);
    const std::uint8_t low = i == 0 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 0 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {kReplacement, length, false};
    point = (point << 6) | (byte & 0x3F);
  }
  return {point, length, true};
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Step step = next(text, at);
    points.push_back(step.point);
    at += step.length;
  }
  return points;
}

std::string repair_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Step step = next(text, at);
    if (step.valid) {
      repaired.append(text.substr(at, step.length));
    } else {
      repaired.append("\xEF\xBF\xBD");
    }
    at += step.length;
  }
  return repaired;
}

}  // namespace headrace::train
