// Quantities as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace headrace::base {

/// "512B", "1.50KiB", "0.31GiB": GiB from a tenth of one on, else the unit that gives 1..1023.
std::string bytes_text(std::int64_t bytes);

/// "0.85s", "42s", "1m12s", "2h03m". Negative or not finite: "?".
std::string duration_text(double seconds);

}  // namespace headrace::base
