// Small gettext catalogues for tests, as bytes.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace headrace::test {

/// English to translation.
using Messages = std::map<std::string, std::string>;

inline void append_u32(std::string& out, std::size_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

/// A little-endian catalogue: header, table of ids, table of texts, strings. An entry for "", the
/// catalogue's own header, is added.
inline std::string compile_mo(Messages messages) {
  messages.emplace("", "Content-Type: text/plain; charset=UTF-8\n");
  const std::size_t count = messages.size();
  std::size_t offset = 28 + 16 * count;
  std::string tables;
  std::string strings;
  const auto add = [&](const std::string& text) {
    append_u32(tables, text.size());
    append_u32(tables, offset);
    strings += text + '\0';
    offset += text.size() + 1;
  };
  for (const auto& [id, text] : messages) add(id);
  for (const auto& [id, text] : messages) add(text);
  std::string out;
  for (const std::size_t word : {std::size_t{0x950412de}, std::size_t{0}, count, std::size_t{28},
                                 28 + 8 * count, std::size_t{0}, std::size_t{0}}) {
    append_u32(out, word);
  }
  return out + tables + strings;
}

}  // namespace headrace::test
