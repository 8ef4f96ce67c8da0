#include "headrace/formats/gettext.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/formats/utf8.h"

namespace headrace::formats {
namespace {

constexpr std::uint32_t kMagic = 0x950412de;
constexpr std::uint32_t kSwappedMagic = 0xde120495;
constexpr std::size_t kHeaderBytes = 28;
constexpr std::size_t kEntryBytes = 8;   // length and offset
constexpr std::size_t kMostPlurals = 8;  // Arabic, the richest known, has 6
// Strings of a sound file lie side by side. A file whose strings overlap could name each of its
// bytes thousands of times: it is not read on when this many times its size was taken.
constexpr std::size_t kMostCopies = 2;

/// A defect of the file, before it is known whether it ends the reading.
struct Defect {
  std::string text;
};

struct Entry {
  std::string_view id;
  std::string_view text;
};

/// The file as numbers and strings, every access checked.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {
    if (bytes.size() < kHeaderBytes) {
      throw Defect{"it has " + std::to_string(bytes.size()) + " bytes, a catalogue at least " +
                   std::to_string(kHeaderBytes)};
    }
    const std::uint32_t magic = number(0);
    swapped_ = magic == kSwappedMagic;
    if (magic != kMagic && !swapped_) {
      throw Defect{"it does not begin with the magic number of a catalogue (0x950412de)"};
    }
    const std::uint32_t major = number(4) >> 16U;
    if (major > 1) {
      throw Defect{"format revision " + std::to_string(major) + " at offset 4; known are 0 and 1"};
    }
    count_ = number(8);
    ids_ = number(12);
    texts_ = number(16);
  }

  std::size_t count() const { return count_; }

  /// What is wrong with the two tables as a whole, if anything.
  std::optional<Defect> table_defect() const {
    const std::size_t table_bytes = count_ * kEntryBytes;
    for (const auto& [offset, field] : {std::pair(ids_, 12), std::pair(texts_, 16)}) {
      if (offset > bytes_.size() || table_bytes > bytes_.size() - offset) {
        return Defect{"a table of " + std::to_string(count_) + " entries (count at offset 8) at " +
                      std::to_string(offset) + " (told at offset " + std::to_string(field) +
                      ") passes the end of the file (" + std::to_string(bytes_.size()) + " bytes)"};
      }
      if (count_ > 0 && offset < kHeaderBytes) {
        return Defect{"a table at " + std::to_string(offset) + " (told at offset " +
                      std::to_string(field) + ") overlaps the header"};
      }
    }
    if (overlap(ids_, table_bytes, texts_, table_bytes)) {
      return Defect{"the tables at " + std::to_string(ids_) + " and " + std::to_string(texts_) +
                    " overlap"};
    }
    return std::nullopt;
  }

  /// How many entries lie within the file in both tables.
  std::size_t readable_count() const {
    const std::size_t later = std::max(ids_, texts_);
    return later > bytes_.size() ? 0 : std::min(count_, (bytes_.size() - later) / kEntryBytes);
  }

  Entry entry(std::size_t index) const {
    return {string(ids_ + index * kEntryBytes, index), string(texts_ + index * kEntryBytes, index)};
  }

 private:
  std::uint32_t number(std::size_t offset) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[offset + i]);
      value |= static_cast<std::uint32_t>(byte) << (8 * (swapped_ ? 3 - i : i));
    }
    return value;
  }

  static bool overlap(std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
  }

  // The string that the table entry at `at` describes.
  std::string_view string(std::size_t at, std::size_t index) const {
    const std::size_t length = number(at);
    const std::size_t offset = number(at + 4);
    const auto defect = [&](const std::string& what) {
      return Defect{"entry " + std::to_string(index) + ": a string of " + std::to_string(length) +
                    " bytes (told at offset " + std::to_string(at) + ") at " +
                    std::to_string(offset) + " (told at offset " + std::to_string(at + 4) + ") " +
                    what};
    };
    if (offset >= bytes_.size() || length >= bytes_.size() - offset) {
      throw defect("passes the end of the file (" + std::to_string(bytes_.size()) + " bytes)");
    }
    const std::size_t table_bytes = count_ * kEntryBytes;
    if (offset < kHeaderBytes || overlap(offset, length + 1, ids_, table_bytes) ||
        overlap(offset, length + 1, texts_, table_bytes)) {
      throw defect("overlaps the header or a table");
    }
    if (bytes_[offset + length] != '\0') {
      throw defect("does not end with a zero byte");
    }
    return bytes_.substr(offset, length);
  }

  std::string_view bytes_;
  bool swapped_ = false;
  std::size_t count_ = 0;
  std::size_t ids_ = 0;
  std::size_t texts_ = 0;
};

std::vector<std::string_view> split_at_zero(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find('\0');
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos || parts.size() > kMostPlurals) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

std::string charset_of(std::string_view header) {
  const std::string lower = base::lower_case(header);
  constexpr std::string_view kKey = "charset=";
  const std::size_t key = lower.find(kKey);
  if (key == std::string::npos) {
    return {};
  }
  const std::string_view value = header.substr(key + kKey.size());
  return std::string(value.substr(0, value.find_first_of(" \t\r\n;")));
}

/// Adds what an entry says: nothing, the header, or one message for each plural form.
void take(const Entry& entry, std::size_t index, Catalogue& catalogue) {
  if (!is_utf8(entry.id) || !is_utf8(entry.text)) {
    ++catalogue.skipped_bad_utf8;
    return;
  }
  if (entry.id.empty()) {
    catalogue.header = entry.text;
    catalogue.charset = charset_of(entry.text);
    return;
  }
  std::string_view id = entry.id;
  std::optional<std::string> context;
  if (const std::size_t end = id.find('\x04'); end != std::string_view::npos) {
    context = std::string(id.substr(0, end));
    id.remove_prefix(end + 1);
  }
  const std::vector<std::string_view> ids = split_at_zero(id);
  const std::vector<std::string_view> texts = split_at_zero(entry.text);
  if (ids.size() > 2 || texts.size() > kMostPlurals) {
    throw Defect{"entry " + std::to_string(index) + ": more than 2 ids or " +
                 std::to_string(kMostPlurals) + " plural forms"};
  }
  for (std::size_t form = 0; form < texts.size(); ++form) {
    catalogue.messages.push_back({context, std::string(form == 0 ? ids.front() : ids.back()),
                                  std::string(texts[form]), static_cast<int>(form)});
  }
}

template <typename OnDefect>
void read_entries(const Reader& reader, std::size_t file_bytes, Catalogue& catalogue,
                  const OnDefect& on_defect) {
  std::size_t copied = 0;
  std::string_view previous;
  const std::size_t count = reader.readable_count();
  for (std::size_t index = 0; index < count; ++index) {
    try {
      const Entry entry = reader.entry(index);
      copied += 2 * kEntryBytes + entry.text.size() + entry.id.size();
      if (copied > kMostCopies * file_bytes) {
        on_defect(Defect{"entry " + std::to_string(index) + ": so many strings overlap that " +
                         std::to_string(copied) + " bytes were read from " +
                         std::to_string(file_bytes)});
        return;
      }
      if (index > 0 && entry.id < previous) {
        on_defect(Defect{"entry " + std::to_string(index) + ": " + base::quote(entry.id, 30) +
                         " comes after " + base::quote(previous, 30) +
                         "; entries must be in ascending order"});
      }
      previous = entry.id;
      take(entry, index, catalogue);
    } catch (const Defect& defect) {
      on_defect(defect);
    }
  }
}

}  // namespace

Catalogue read_mo(std::string_view bytes, std::string_view where) {
  Catalogue catalogue;
  try {
    const Reader reader(bytes);
    if (const std::optional<Defect> defect = reader.table_defect()) {
      throw Defect{*defect};
    }
    std::optional<Defect> first;
    read_entries(reader, bytes.size(), catalogue, [&first](const Defect& defect) {
      if (!first) {
        first = defect;
      }
    });
    if (first) {
      throw Defect{*first};
    }
  } catch (const Defect& defect) {
    throw base::IoError(std::string(where) + ": not a sound gettext catalogue: " + defect.text +
                        "; make it anew with msgfmt");
  }
  return catalogue;
}

Catalogue read_mo_tolerant(std::string_view bytes, std::string_view where) {
  Catalogue catalogue;
  std::size_t defects = 0;
  std::string first;
  const auto note = [&](const Defect& defect) {
    if (defects++ == 0) {
      first = defect.text;
    }
  };
  try {
    const Reader reader(bytes);
    if (const std::optional<Defect> defect = reader.table_defect()) {
      note(*defect);
    }
    read_entries(reader, bytes.size(), catalogue, note);
  } catch (const Defect& defect) {
    note(defect);
  }
  if (defects > 0) {
    catalogue.warning = std::string(where) + ": damaged gettext catalogue: " + first +
                        (defects > 1 ? " (and " + std::to_string(defects - 1) + " more)" : "") +
                        "; " + std::to_string(catalogue.messages.size()) +
                        " translations could be read";
  }
  return catalogue;
}

}  // namespace headrace::formats
