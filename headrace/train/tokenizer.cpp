#include "headrace/train/tokenizer.h"

#include <algorithm>
#include <utility>

#include "headrace/train/utf8.h"

namespace headrace::train {
namespace {

void append_bytes(std::string_view text, std::vector<std::int64_t>& ids) {
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
}

}  // namespace

ByteTokenizer::ByteTokenizer(std::vector<std::string> languages)
    : languages_(std::move(languages)) {
  std::sort(languages_.begin(), languages_.end());
  languages_.erase(std::unique(languages_.begin(), languages_.end()), languages_.end());
}

std::int64_t ByteTokenizer::source_vocabulary() const {
  return kFirstLanguage + static_cast<std::int64_t>(languages_.size());
}

std::int64_t ByteTokenizer::tag(std::string_view language) const {
  const auto found = std::lower_bound(languages_.begin(), languages_.end(), language);
  if (found == languages_.end() || *found != language) return kAnyLanguage;
  return kFirstLanguage + (found - languages_.begin());
}

std::vector<std::int64_t> ByteTokenizer::encode_source(std::string_view language,
                                                       std::string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size() + 1);
  ids.push_back(tag(language));
  append_bytes(text, ids);
  return ids;
}

std::vector<std::int64_t> ByteTokenizer::encode_target(std::string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  append_bytes(text, ids);
  return ids;
}

std::string ByteTokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string bytes;
  bytes.reserve(ids.size());
  for (const std::int64_t id : ids) {
    if (id == kEnd) break;
    if (id >= 0 && id < 256) bytes.push_back(static_cast<char>(id));
  }
  return repair_utf8(bytes);
}

}  // namespace headrace::train
