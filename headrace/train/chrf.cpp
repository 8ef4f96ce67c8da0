#include "headrace/train/chrf.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "headrace/base/error.h"
#include "headrace/train/utf8.h"

namespace headrace::train {
namespace {

constexpr std::size_t kMaxOrder = 6;
constexpr double kBetaSquared = 4.0;

struct Counts {
  std::int64_t hypothesis = 0;
  std::int64_t reference = 0;
  std::int64_t match = 0;
};

/// What Python's str.split() takes for whitespace, which is what sacrebleu removes.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::u32string characters(std::string_view text) {
  std::u32string points = decode_utf8(text);
  std::erase_if(points, is_space);
  return points;
}

void add_matches(std::u32string_view hypothesis, std::u32string_view reference, std::size_t order,
                 Counts& counts) {
  // Where the reference has no n-gram of this order, the hypothesis's are not held against it.
  if (reference.size() < order) return;
  std::unordered_map<std::u32string_view, std::int64_t> open;
  for (std::size_t i = 0; i + order <= reference.size(); ++i) {
    ++open[reference.substr(i, order)];
    ++counts.reference;
  }
  for (std::size_t i = 0; i + order <= hypothesis.size(); ++i) {
    ++counts.hypothesis;
    const auto found = open.find(hypothesis.substr(i, order));
    if (found != open.end() && found->second > 0) {
      --found->second;
      ++counts.match;
    }
  }
}

void check_lengths(std::size_t hypotheses, std::size_t references) {
  if (hypotheses != references) {
    throw base::ConfigError("each hypothesis needs one reference: " + std::to_string(hypotheses) +
                            " hypotheses, " + std::to_string(references) +
                            " references; give lists of equal length");
  }
}

}  // namespace

double chrf(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  check_lengths(hypotheses.size(), references.size());
  std::array<Counts, kMaxOrder> by_order{};
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::u32string hypothesis = characters(hypotheses[i]);
    const std::u32string reference = characters(references[i]);
    for (std::size_t order = 1; order <= kMaxOrder; ++order) {
      add_matches(hypothesis, reference, order, by_order[order - 1]);
    }
  }
  double precision = 0;
  double recall = 0;
  int effective_order = 0;
  for (const Counts& counts : by_order) {
    if (counts.hypothesis == 0 || counts.reference == 0) continue;
    precision += static_cast<double>(counts.match) / static_cast<double>(counts.hypothesis);
    recall += static_cast<double>(counts.match) / static_cast<double>(counts.reference);
    ++effective_order;
  }
  if (precision + recall == 0) return 0;
  precision /= effective_order;
  recall /= effective_order;
  return 100 * (1 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall);
}

double exact_match(std::span<const std::string> hypotheses,
                   std::span<const std::string> references) {
  check_lengths(hypotheses.size(), references.size());
  if (hypotheses.empty()) return 0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    equal += hypotheses[i] == references[i] ? 1 : 0;
  }
  return 100.0 * static_cast<double>(equal) / static_cast<double>(hypotheses.size());
}

}  // namespace headrace::train
