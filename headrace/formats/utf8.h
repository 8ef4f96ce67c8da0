// Is a string UTF-8?
#pragma once

#include <string_view>

namespace headrace::formats {

/// True if `text` is well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates,
/// nothing above U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace headrace::formats
