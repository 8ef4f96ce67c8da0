#include "headrace/base/units.h"

#include <array>
#include <cmath>

#include "headrace/base/text.h"

namespace headrace::base {

namespace {

std::string two_digits(std::int64_t number) {
  return std::string(number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  struct Unit {
    const char* name;
    double size;
    double from;
  };
  constexpr double kKib = 1024;
  constexpr double kGib = kKib * kKib * kKib;
  constexpr std::array<Unit, 4> kUnits{{{"TiB", kGib * kKib, kGib * kKib},
                                        {"GiB", kGib, 0.1 * kGib},
                                        {"MiB", kKib * kKib, kKib * kKib},
                                        {"KiB", kKib, kKib}}};
  const double magnitude = std::abs(static_cast<double>(bytes));
  for (const Unit& unit : kUnits) {
    if (magnitude >= unit.from) {
      return fixed_text(static_cast<double>(bytes) / unit.size, 2) + unit.name;
    }
  }
  return std::to_string(bytes) + "B";
}

std::string duration_text(double seconds) {
  constexpr double kMost = 1e15;  // what still fits an integer with room to spare
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kMost) {
    return "?";
  }
  if (seconds < 9.995) {
    return fixed_text(seconds, 2) + "s";
  }
  const std::int64_t whole = std::llround(seconds);
  if (whole < 60) {
    return std::to_string(whole) + "s";
  }
  if (whole < 3600) {
    return std::to_string(whole / 60) + "m" + two_digits(whole % 60) + "s";
  }
  return std::to_string(whole / 3600) + "h" + two_digits(whole % 3600 / 60) + "m";
}

}  // namespace headrace::base
