// Reader of compiled gettext catalogues (.mo): bytes to messages, nothing else.
// The format: docs/formats/gettext.md (after the GNU gettext manual, "The Format of GNU MO Files").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::formats {

/// One translated form of one message.
struct Message {
  std::optional<std::string> context;  // msgctxt
  std::string id;                      // what is translated; for plural_index > 0 the plural of it
  std::string text;                    // the translation
  int plural_index = 0;                // which of the language's plural forms `text` is
};

struct Catalogue {
  std::vector<Message> messages;       // in the order of the file, the header entry left out
  std::string header;                  // the translation of "": lines "Name: value"
  std::string charset;                 // as the header names it; empty if it does not
  std::int64_t skipped_bad_utf8 = 0;   // entries left out because a string is not UTF-8
  std::optional<std::string> warning;  // only from read_mo_tolerant: what is damaged, and where
};

/// Reads a whole catalogue, of either byte order. Strings are taken as UTF-8 whatever the header
/// says. A header whose plural rule makes no sense is no error: the rule is not needed to read.
/// @param where names the file in messages.
/// Cost: O(size of the file) in time and memory, whatever the numbers in it.
/// @throws base::IoError for the first defect: not a catalogue, truncated, a count, offset or
/// length that leaves the file, tables or strings that overlap a table, entries out of order.
Catalogue read_mo(std::string_view bytes, std::string_view where);

/// Reads what can be read and never throws: a damaged catalogue gives its sound entries and exactly
/// one warning, which counts the damaged ones and tells the first defect.
Catalogue read_mo_tolerant(std::string_view bytes, std::string_view where);

}  // namespace headrace::formats
