#include "headrace/train/corpus.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <sys/stat.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/text.h"
#include "headrace/formats/gettext.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

// The largest catalogue of iso-codes has 0.6 MB.
constexpr std::uint64_t kMostCatalogueBytes = 64ULL << 20U;

// The domains of iso-codes, and the names that older versions gave them.
constexpr std::array kDomains = {
    "iso_15924", "iso_3166",  "iso_3166-1", "iso_3166-2", "iso_3166-3", "iso_3166_2", "iso_4217",
    "iso_639",   "iso_639-2", "iso_639-3",  "iso_639-5",  "iso_639_3",  "iso_639_5"};

struct Found {
  bool alias;  // reached through a link
  std::string locale;
  std::string domain;
  fs::path path;
  std::pair<dev_t, ino_t> identity;
};

bool is_english(std::string_view locale) {
  return locale.starts_with("en") &&
         (locale.size() == 2 || locale[2] == '_' || locale[2] == '@' || locale[2] == '.');
}

std::vector<std::string> locales_below(const fs::path& root) {
  std::vector<std::string> locales;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    locales.push_back(it->path().filename().string());
  }
  std::sort(locales.begin(), locales.end());
  return locales;
}

/// Every catalogue file below `root`, each real file once, sorted by locale and domain.
std::vector<Found> find_catalogues(const fs::path& root, CorpusCounts& counts) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  std::vector<Found> all;
  for (const std::string& locale : locales_below(real_root)) {
    for (const char* domain : kDomains) {
      const fs::path path = real_root / locale / "LC_MESSAGES" / (std::string(domain) + ".mo");
      struct stat status {};
      if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      if (is_english(locale)) {
        ++counts.english_files;
        continue;
      }
      const bool alias = fs::canonical(path, error) != path;
      all.push_back({alias, locale, domain, path, {status.st_dev, status.st_ino}});
    }
  }
  // A file's own name comes before the links to it, whose folder may name another locale.
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
    return std::tie(a.alias, a.locale, a.domain) < std::tie(b.alias, b.locale, b.domain);
  });
  std::vector<Found> once;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (Found& found : all) {
    if (seen.insert(found.identity).second) {
      once.push_back(std::move(found));
    } else {
      ++counts.alias_files;
    }
  }
  std::sort(once.begin(), once.end(), [](const Found& a, const Found& b) {
    return std::tie(a.locale, a.domain) < std::tie(b.locale, b.domain);
  });
  return once;
}

/// The pairs of the language that is being read.
using Seen = std::unordered_set<std::string>;

void add_pairs(formats::Catalogue&& catalogue, const std::string& locale,
               const CorpusOptions& options, Seen& seen, Corpus& corpus) {
  CorpusCounts& counts = corpus.counts;
  counts.pairs_read +=
      static_cast<std::int64_t>(catalogue.messages.size()) + catalogue.skipped_bad_utf8;
  counts.dropped_not_utf8 += catalogue.skipped_bad_utf8;
  for (formats::Message& message : catalogue.messages) {
    if (base::trim(message.text).empty() || base::trim(message.id).empty()) {
      ++counts.dropped_empty;
    } else if (message.text == message.id) {
      ++counts.dropped_identical;
    } else if (message.text.size() > options.max_source_bytes ||
               message.id.size() > options.max_target_bytes) {
      ++counts.dropped_long;
    } else if (!seen.insert(message.text + '\0' + message.id).second) {
      ++counts.dropped_repeated;
    } else {
      ++counts.kept;
      corpus.pairs.push_back({locale, std::move(message.text), std::move(message.id)});
    }
  }
}

void read_catalogue(const Found& found, const CorpusOptions& options,
                    const std::function<void(const std::string&)>& warn, Seen& seen,
                    Corpus& corpus) {
  std::string problem;
  try {
    formats::Catalogue catalogue = formats::read_mo_tolerant(
        base::read_file(found.path, kMostCatalogueBytes), found.path.string());
    ++corpus.counts.files;
    problem = catalogue.warning.value_or("");
    add_pairs(std::move(catalogue), found.locale, options, seen, corpus);
  } catch (const base::IoError& error) {
    problem = error.what();
  }
  if (problem.empty()) return;
  ++corpus.counts.broken_files;
  if (warn) warn(problem);
}

[[noreturn]] void refuse_empty(const CorpusOptions& options, const CorpusCounts& counts) {
  std::error_code error;
  const bool exists = fs::is_directory(options.root, error);
  throw base::ConfigError(
      "no translations found below " + options.root +
      (exists
           ? ": " + std::to_string(counts.files + counts.english_files) +
                 " iso-codes catalogues (" + std::to_string(counts.english_files) +
                 " of them English), " + std::to_string(counts.pairs_read) + " strings read, 0 kept"
           : ": no such folder") +
      "; install the Debian package iso-codes (apt-get install iso-codes), or set data.root to the "
      "folder that holds <locale>/LC_MESSAGES/iso_639-3.mo");
}

/// FNV-1a, finished by a mixer: its low bits alone are too regular to divide by.
std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  hash = (hash ^ (hash >> 33U)) * 0xFF51AFD7ED558CCDULL;
  hash = (hash ^ (hash >> 33U)) * 0xC4CEB9FE1A85EC53ULL;
  return hash ^ (hash >> 33U);
}

constexpr std::uint64_t kOneIn = 50;  // 2 %

std::string pair_key(const Pair& pair) {
  return base::lower_case(pair.target) + '\0' + pair.source + '\0' + pair.language;
}

}  // namespace

Corpus read_corpus(const CorpusOptions& options,
                   const std::function<void(const std::string&)>& warn) {
  Corpus corpus;
  Seen seen;
  std::string locale;
  for (const Found& found : find_catalogues(options.root, corpus.counts)) {
    // Catalogues come sorted by locale.
    if (locale != found.locale) seen.clear();
    locale = found.locale;
    const std::size_t before = corpus.pairs.size();
    read_catalogue(found, options, warn, seen, corpus);
    if (corpus.pairs.size() > before &&
        (corpus.languages.empty() || corpus.languages.back() != found.locale)) {
      corpus.languages.push_back(found.locale);
    }
  }
  corpus.counts.languages = static_cast<std::int64_t>(corpus.languages.size());
  if (corpus.pairs.empty()) refuse_empty(options, corpus.counts);
  return corpus;
}

Part part_of(const Pair& pair) {
  if (stable_hash(base::lower_case(pair.target)) % kOneIn == 0) return Part::kUnseen;
  return stable_hash(pair_key(pair)) % kOneIn == 0 ? Part::kSeen : Part::kTraining;
}

Split split(std::vector<Pair> pairs) {
  Split parts;
  for (Pair& pair : pairs) {
    switch (part_of(pair)) {
      case Part::kTraining:
        parts.training.push_back(std::move(pair));
        break;
      case Part::kSeen:
        parts.seen.push_back(std::move(pair));
        break;
      case Part::kUnseen:
        parts.unseen.push_back(std::move(pair));
        break;
    }
  }
  return parts;
}

std::vector<Pair> sample(std::span<const Pair> pairs, std::size_t count) {
  struct Ranked {
    std::uint64_t hash;
    const Pair* pair;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(pairs.size());
  for (const Pair& pair : pairs) {
    // Salted: the part's own hash leaves only multiples of 50 among the seen pairs.
    ranked.push_back({stable_hash("sample" + pair_key(pair)), &pair});
  }
  count = std::min(count, ranked.size());
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ranked.begin(), end, ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.hash, a.pair->language, a.pair->source, a.pair->target) <
           std::tie(b.hash, b.pair->language, b.pair->source, b.pair->target);
  });
  std::vector<Pair> chosen;
  chosen.reserve(count);
  for (auto it = ranked.begin(); it != end; ++it) chosen.push_back(*it->pair);
  return chosen;
}

}  // namespace headrace::train
