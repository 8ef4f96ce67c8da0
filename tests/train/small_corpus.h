// A corpus of made-up names in made-up languages, small enough for tests of whole runs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "headrace/base/file.h"

#include "tests/formats/compile_mo.h"

namespace headrace::test {

/// Writes `languages` catalogues of `strings` pairs each below `root`. The translation of a name is
/// the name from its end; some are longer than others, so that batches need padding.
inline void write_small_corpus(const std::filesystem::path& root, int languages = 6,
                               int strings = 80) {
  for (int language = 0; language < languages; ++language) {
    const char letter = static_cast<char>('a' + language % 26);
    Messages messages;
    for (int i = 0; i < strings; ++i) {
      std::string english = "Name ";
      english += std::to_string(i);
      english.append(static_cast<std::size_t>(i % 9), static_cast<char>('a' + i % 5));
      std::string foreign(1, letter);
      foreign.append(english.rbegin(), english.rend());
      messages[english] = foreign;
    }
    std::string locale = "x";
    locale += letter;
    const std::filesystem::path folder = root / locale / "LC_MESSAGES";
    std::filesystem::create_directories(folder);
    base::write_file(folder / "iso_639-3.mo", compile_mo(messages));
  }
}

}  // namespace headrace::test
