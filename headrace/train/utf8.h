// UTF-8 that may be broken (what a model says is bytes): its code points, and a repaired text.
#pragma once

#include <string>
#include <string_view>

namespace headrace::train {

/// What stands for bytes that are not UTF-8 (U+FFFD).
inline constexpr char32_t kReplacement = 0xFFFD;

/// The code points of `text`; each maximal ill-formed part becomes one kReplacement, as Unicode
/// recommends and Python's errors="replace" does. Never throws.
std::u32string decode_utf8(std::string_view text);

/// `text` with each ill-formed part replaced by U+FFFD: always valid UTF-8.
std::string repair_utf8(std::string_view text);

}  // namespace headrace::train
