#include "headrace/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cwchar>
#include <limits>

namespace headrace::base {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// LC_CTYPE of this thread is C.UTF-8 while it lives, whatever the program's locale: what wcwidth
/// and mbrtowc go by.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) before_ = uselocale(locale_);
  }
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    uselocale(before_);
    freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t locale_;
  locale_t before_ = nullptr;
};

template <typename Number, typename... Format>
std::string number_text(Number number, Format... format) {
  std::array<char, 512> buffer{};  // a double of 309 digits before the point, and 17 after it
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format...);
  return error == std::errc() ? std::string(buffer.data(), end) : std::string("?");
}

template <typename Number>
std::string shortest_text(Number number) {
  if (std::isnan(number)) {
    return "nan";
  }
  return number_text(number);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr std::size_t kMost = 64;
  a = a.substr(0, kMost);
  b = b.substr(0, kMost);
  // Three rows of the dynamic program: the swap of neighbours looks two rows back.
  std::array<std::array<std::size_t, kMost + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) {
    rows[0][j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + differs});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::optional<std::string> nearest_name(std::string_view name,
                                        std::span<const std::string> candidates) {
  std::optional<std::string> nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t distance = edit_distance(name, candidate);
    const bool near = distance <= std::max<std::size_t>(1, longer / 3) && distance < longer;
    if (near && distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const auto nearest = nearest_name(name, candidates);
  return nearest ? std::string("; did you mean '") + *nearest + "'?" : std::string();
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    joined += i == 0 ? "" : std::string(separator);
    joined += parts[i];
  }
  return joined;
}

std::string join(std::span<const int> numbers, std::string_view separator) {
  std::vector<std::string> parts;
  parts.reserve(numbers.size());
  for (const int number : numbers) {
    parts.push_back(std::to_string(number));
  }
  return join(parts, separator);
}

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  return lowered;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string thousands(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t place = digits.size(); place > sign + 3; place -= 3) {
    digits.insert(place - 3, 1, ',');
  }
  return digits;
}

std::string exact_text(double number) {
  return shortest_text(number);
}
std::string exact_text(float number) {
  return shortest_text(number);
}

std::string fixed_text(double number, int decimals) {
  return number_text(number, std::chars_format::fixed, std::clamp(decimals, 0, 17));
}

std::string scientific_text(double number) {
  return number_text(number, std::chars_format::scientific, 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t min,
                                          std::int64_t max) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < min || number > max) {
    return std::nullopt;
  }
  return number;
}

std::size_t columns(std::string_view text) {
  const Utf8Locale locale;
  std::size_t used = 0;
  std::mbstate_t state{};
  for (std::size_t i = 0; i < text.size();) {
    wchar_t character = 0;
    const std::size_t length = std::mbrtowc(&character, text.data() + i, text.size() - i, &state);
    const bool is_character = length >= 1 && length <= text.size() - i;
    const int width = is_character ? wcwidth(character) : 1;
    used += static_cast<std::size_t>(std::max(width, 0));
    if (!is_character) state = {};
    i += is_character ? length : 1;
  }
  return used;
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t used = columns(text);
  return std::string(text) + std::string(width > used ? width - used : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t used = columns(text);
  return std::string(width > used ? width - used : 0, ' ') + std::string(text);
}

std::string quote(std::string_view text, std::size_t most) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto show = [&](std::string_view part) {
    std::string shown;
    for (const char c : part) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte < 0x7F) {
        shown += c;
      } else {
        shown += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
      }
    }
    return shown;
  };
  if (text.size() <= most) {
    return std::string("'") + show(text) + "'";
  }
  const std::size_t tail = most / 3;
  return std::string("'") + show(text.substr(0, most - tail)) + "'...'" +
         show(text.substr(text.size() - tail)) + "' (" +
         thousands(static_cast<std::int64_t>(text.size())) + " bytes)";
}

TextPosition position_at(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t last_end = before.rfind('\n');
  const std::size_t start = last_end == std::string_view::npos ? 0 : last_end + 1;
  return {static_cast<std::size_t>(lines) + 1, before.size() - start + 1};
}

}  // namespace headrace::base
