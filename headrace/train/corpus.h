// The translation corpus: the gettext catalogues of the iso-codes package (names of languages,
// countries, regions, currencies and scripts in some 150 languages), read as pairs from the
// translated string to the English one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::train {

/// One sentence pair. `target` is English.
struct Pair {
  std::string language;  // the catalogue's locale: "fr", "pt_BR", "sr@latin"
  std::string source;
  std::string target;

  bool operator==(const Pair&) const = default;
};

struct CorpusOptions {
  std::string root = "/usr/share/locale";  // holds <locale>/LC_MESSAGES/<domain>.mo
  std::size_t max_source_bytes = 160;
  std::size_t max_target_bytes = 80;
};

/// What was read and what was left out, and why. Each pair is counted under one reason only, the
/// first in this order.
struct CorpusCounts {
  std::int64_t files = 0;          // catalogues read
  std::int64_t broken_files = 0;   // of which damaged: what could be read was taken
  std::int64_t alias_files = 0;    // other names of files already read
  std::int64_t english_files = 0;  // not read: they translate English to English
  std::int64_t languages = 0;      // with at least one pair kept
  std::int64_t pairs_read = 0;     // all strings but the catalogue headers
  std::int64_t dropped_not_utf8 = 0;
  std::int64_t dropped_empty = 0;
  std::int64_t dropped_identical = 0;
  std::int64_t dropped_long = 0;
  std::int64_t dropped_repeated = 0;  // the same pair of the same language in another domain
  std::int64_t kept = 0;

  bool operator==(const CorpusCounts&) const = default;
};

struct Corpus {
  std::vector<Pair> pairs;             // sorted by catalogue, then as the catalogue has them
  std::vector<std::string> languages;  // sorted; those that `pairs` names
  CorpusCounts counts;
};

/// Reads every iso-codes catalogue below `options.root`: all domains, all locales, each real file
/// once (by device and inode, under its own name rather than a link's), English locales left out.
/// The result depends on the files only, not on the order in which the file system lists them.
/// A damaged or unreadable catalogue is told to `warn` (file and reason); what it still yields is
/// used.
/// @throws base::ConfigError if nothing is left, naming the folder and the package to install.
/// Cost: about 0.2 s for iso-codes 4.15 (668 catalogues, 190,000 pairs of 156 languages).
Corpus read_corpus(const CorpusOptions& options,
                   const std::function<void(const std::string&)>& warn = {});

/// Which part of the data a pair belongs to.
enum class Part { kTraining, kSeen, kUnseen };

/// By a stable hash of the pair alone, so that neither order, nor layout, nor what else was
/// installed moves a pair to another part: 2 % of the distinct English strings (ASCII letters
/// lower-cased, so that spellings go together) with all their pairs are kUnseen; of the other
/// pairs 2 % are kSeen: their English stands in the training data, through other languages. Some of
/// those languages write the name alike, so kSeen also rewards what related languages share.
Part part_of(const Pair& pair);

struct Split {
  std::vector<Pair> training;
  std::vector<Pair> seen;
  std::vector<Pair> unseen;
};

/// Sorts `pairs` into their parts, in their order.
Split split(std::vector<Pair> pairs);

/// At most `count` pairs, those with the smallest hashes: a sample that does not depend on the
/// order of `pairs`, and of which a larger one holds the smaller one.
std::vector<Pair> sample(std::span<const Pair> pairs, std::size_t count);

}  // namespace headrace::train
