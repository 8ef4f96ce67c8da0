// Small pieces of text: for messages, tables and files that must read back to the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::base {

/// Insertions, deletions, substitutions and swaps of neighbours that lead from one to the other,
/// ASCII case ignored. Cost O(length x length); only the first 64 characters are looked at.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the smallest edit distance (the first of equals), if it is near enough to be
/// what was meant: at most a third of the longer name, and never all of it.
std::optional<std::string> nearest_name(std::string_view name,
                                        std::span<const std::string> candidates);

/// "; did you mean 'GPipe'?" or, if nothing is near, "".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "a, b, c"
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");
std::string join(std::span<const int> numbers, std::string_view separator = ", ");

/// ASCII only, whatever the locale.
std::string lower_case(std::string_view text);
/// Without the spaces, tabs and line ends around it.
std::string_view trim(std::string_view text);

/// 8412 -> "8,412"
std::string thousands(std::int64_t number);

/// The shortest decimal text that reads back to the same bits. Not finite: "nan", "inf", "-inf".
std::string exact_text(double number);
std::string exact_text(float number);
/// Rounded to `decimals` places, with a point whatever the locale.
std::string fixed_text(double number, int decimals);
/// Two significant places and an exponent: "3.0e-04".
std::string scientific_text(double number);

/// The whole of `text` as a number in [min, max]; nothing for anything else.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t min,
                                          std::int64_t max);

/// Filled with spaces up to `width` columns of a terminal (UTF-8: two for an East Asian wide
/// character, none for a combining mark; a byte that is not UTF-8 counts as one).
std::string pad_right(std::string_view text, std::size_t width);
std::string pad_left(std::string_view text, std::size_t width);
std::size_t columns(std::string_view text);

/// For showing foreign text in a message: in single quotes, control and non-ASCII bytes as \xNN,
/// the middle left out when it is longer than `most` bytes.
std::string quote(std::string_view text, std::size_t most = 60);

/// Line and column, both from 1, of a byte of a text.
struct TextPosition {
  std::size_t line = 1;
  std::size_t column = 1;
};
TextPosition position_at(std::string_view text, std::size_t byte);

}  // namespace headrace::base
