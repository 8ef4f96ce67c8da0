// Repeated measurements: the median, and the least and the most, as they stand in a table.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace headrace::bench {

using Samples = std::vector<double>;

/// The middle one (of an even number the upper).
inline double median(Samples samples) {
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples.at(samples.size() / 2);
}

/// a[i] / b[i]: what was measured in one round is compared within that round.
inline Samples ratios(const Samples& a, const Samples& b) {
  Samples result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] / b.at(i));
  return result;
}

inline std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// "1.23 (1.20 to 1.31)": median, least, most.
inline std::string spread(const Samples& samples, int decimals) {
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  return fixed(median(samples), decimals) + " (" + fixed(*least, decimals) + " to " +
         fixed(*most, decimals) + ")";
}

/// Wall time of `work`.
template <typename Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One line of a Markdown table.
inline void print_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  std::puts(line.c_str());
  std::fflush(stdout);
}

inline void print_header(const std::vector<std::string>& cells) {
  print_row(cells);
  print_row(std::vector<std::string>(cells.size(), "---"));
}

}  // namespace headrace::bench
