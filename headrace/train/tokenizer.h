// The byte tokenizer: no file, no training, any script. Ids 0..255 are bytes, then the special
// tokens, then one tag per language. A tag stands first in the source and tells its language, as
// in Johnson et al., "Google's Multilingual Neural Machine Translation System", TACL 2017.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::train {

/// Text to token ids and back. The ids depend on nothing but the list of languages.
/// Immutable; safe to use from several threads.
class ByteTokenizer {
 public:
  static constexpr std::int64_t kPad = 256;
  static constexpr std::int64_t kBegin = 257;
  static constexpr std::int64_t kEnd = 258;
  static constexpr std::int64_t kAnyLanguage = 259;  // the tag of a language not in the list
  static constexpr std::int64_t kFirstLanguage = 260;

  /// `languages` in any order, repetitions allowed; their tags follow the sorted order.
  explicit ByteTokenizer(std::vector<std::string> languages);

  /// Sorted, each once: what a checkpoint must keep to build the same tokenizer.
  const std::vector<std::string>& languages() const { return languages_; }

  /// Ids that a source can hold: bytes, specials and tags.
  std::int64_t source_vocabulary() const;
  /// Ids that a target can hold: bytes, pad, begin and end.
  std::int64_t target_vocabulary() const { return kAnyLanguage; }

  /// kAnyLanguage for a language that is not in the list.
  std::int64_t tag(std::string_view language) const;

  /// The tag of `language`, then the bytes of `text`.
  std::vector<std::int64_t> encode_source(std::string_view language, std::string_view text) const;
  /// The bytes of `text`, without begin and end.
  std::vector<std::int64_t> encode_target(std::string_view text) const;

  /// Up to the first kEnd; ids that are not bytes are left out. Whatever the ids, the result is
  /// valid UTF-8: each ill-formed part becomes U+FFFD.
  std::string decode(std::span<const std::int64_t> ids) const;

 private:
  std::vector<std::string> languages_;
};

}  // namespace headrace::train
