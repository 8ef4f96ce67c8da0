// How good translations are: chrF over a corpus, and the share that is exactly right.
// chrF: Popovic, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015. The same
// numbers as sacrebleu 2's default chrF2 with one reference.
#pragma once

#include <span>
#include <string>

namespace headrace::train {

/// Corpus chrF2, 0..100: character n-grams of order 1 to 6 over code points, whitespace removed;
/// counts are summed over all pairs, then precision and recall are averaged over the orders that
/// both sides have (effective order), then F with beta = 2. 0 where nothing can be compared.
/// Text that is not UTF-8 counts U+FFFD for each ill-formed part.
/// @throws base::ConfigError if the lists differ in length.
/// Cost: time linear in the text; memory of one pair at a time.
double chrf(std::span<const std::string> hypotheses, std::span<const std::string> references);

/// The share of hypotheses that equal their reference byte for byte, in per cent; 0 for empty
/// lists.
/// @throws base::ConfigError if the lists differ in length.
double exact_match(std::span<const std::string> hypotheses,
                   std::span<const std::string> references);

}  // namespace headrace::train
