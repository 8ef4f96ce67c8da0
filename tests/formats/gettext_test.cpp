#include "headrace/formats/gettext.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::formats {
namespace {

using namespace std::string_literals;
using Pairs = std::vector<std::pair<std::string, std::string>>;

void put(std::string& file, std::size_t at, std::uint32_t value, bool big_endian = false) {
  for (std::size_t i = 0; i < 4; ++i) {
    file[at + i] = static_cast<char>(value >> (8 * (big_endian ? 3 - i : i)) & 0xFFU);
  }
}

// Header (28 bytes), table of ids, table of texts, then the strings, each with its zero byte.
std::string make_mo(const Pairs& pairs, bool big_endian = false) {
  const auto count = static_cast<std::uint32_t>(pairs.size());
  std::string file(28 + 16 * pairs.size(), '\0');
  const std::uint32_t header[] = {0x950412de, 0, count, 28, 28 + 8 * count, 0, 28 + 16 * count};
  for (std::size_t i = 0; i < 7; ++i) {
    put(file, 4 * i, header[i], big_endian);
  }
  const auto add = [&](std::size_t table, const std::string& text) {
    put(file, table, static_cast<std::uint32_t>(text.size()), big_endian);
    put(file, table + 4, static_cast<std::uint32_t>(file.size()), big_endian);
    file += text + '\0';
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    add(28 + 8 * i, pairs[i].first);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    add(28 + 8 * (pairs.size() + i), pairs[i].second);
  }
  return file;
}

const Pairs kThree{{"", "Project-Id-Version: x\nContent-Type: text/plain; charset=UTF-8\n"},
                   {"Dutch",
                    "N\xC3\xA9"
                    "erlandais"},
                   {"French",
                    "fran\xC3\xA7"
                    "ais"}};

std::string error_of(const std::string& file) {
  try {
    read_mo(file, "x.mo");
  } catch (const base::IoError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

TEST(ReadMo, ReadsBothByteOrders) {
  for (const bool big_endian : {false, true}) {
    const Catalogue catalogue = read_mo(make_mo(kThree, big_endian), "x.mo");
    ASSERT_EQ(catalogue.messages.size(), 2U);
    EXPECT_EQ(catalogue.messages[0].id, "Dutch");
    EXPECT_EQ(catalogue.messages[1].text, kThree[2].second);
    EXPECT_FALSE(catalogue.messages[0].context.has_value());
    EXPECT_EQ(catalogue.header, kThree[0].second);
    EXPECT_EQ(catalogue.charset, "UTF-8");
    EXPECT_FALSE(catalogue.warning.has_value());
  }
}

TEST(ReadMo, KeepsContextAndEveryPluralForm) {
  const Catalogue catalogue =
      read_mo(make_mo({{"menu\x04%d file\0%d files"s, "%d fichier\0%d fichiers\0%d de fichiers"s},
                       {"verb\x04Open", "Ouvrir"}}),
              "x.mo");
  ASSERT_EQ(catalogue.messages.size(), 4U);
  const char* ids[] = {"%d file", "%d files", "%d files", "Open"};
  const char* texts[] = {"%d fichier", "%d fichiers", "%d de fichiers", "Ouvrir"};
  const char* contexts[] = {"menu", "menu", "menu", "verb"};
  const int forms[] = {0, 1, 2, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(catalogue.messages[i].id, ids[i]);
    EXPECT_EQ(catalogue.messages[i].text, texts[i]);
    EXPECT_EQ(catalogue.messages[i].context, contexts[i]);
    EXPECT_EQ(catalogue.messages[i].plural_index, forms[i]);
  }
}

TEST(ReadMo, DoesNotNeedTheHeaderOrItsPluralRule) {
  const Catalogue catalogue = read_mo(
      make_mo({{"", "Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"}, {"a", "b"}}), "x.mo");
  EXPECT_EQ(catalogue.messages.size(), 1U);
  EXPECT_EQ(catalogue.charset, "");
  EXPECT_EQ(read_mo(make_mo({{"a", "b"}}), "x.mo").header, "");
  EXPECT_TRUE(read_mo(make_mo({}), "x.mo").messages.empty());
}

TEST(ReadMo, SkipsAndCountsStringsThatAreNotUtf8) {
  const Catalogue catalogue =
      read_mo(make_mo({{"a", "caf\xE9"}, {"b", "good"}, {"c\xFF", "x"}}), "x.mo");
  ASSERT_EQ(catalogue.messages.size(), 1U);
  EXPECT_EQ(catalogue.messages[0].id, "b");
  EXPECT_EQ(catalogue.skipped_bad_utf8, 2);
}

TEST(ReadMo, RefusesWhatIsNoCatalogue) {
  expect_has(error_of(""), {"x.mo", "0 bytes"});
  expect_has(error_of("short"), {"5 bytes", "28"});
  expect_has(error_of(std::string(100, 'a')), {"magic"});
  std::string file = make_mo(kThree);
  put(file, 4, 0x00020000);
  expect_has(error_of(file), {"revision 2", "offset 4"});
}

TEST(ReadMo, NamesOffsetAndValueOfABadNumber) {
  std::string file = make_mo(kThree);
  put(file, 8, 0x7f7f7f7f);
  expect_has(error_of(file), {"x.mo", "2139062143 entries", "offset 8"});
  file = make_mo(kThree);
  put(file, 12, 0xffffffff);
  expect_has(error_of(file), {"4294967295", "offset 12"});
  file = make_mo(kThree);
  put(file, 28 + 8, 0xffffffff);
  expect_has(error_of(file), {"entry 1", "4294967295 bytes", "offset 36"});
  file = make_mo(kThree);
  put(file, 28 + 12, 0x7f7f7f7f);
  expect_has(error_of(file), {"entry 1", "2139062143", "offset 40"});
}

TEST(ReadMo, RefusesOverlapsMissingZerosAndWrongOrder) {
  std::string file = make_mo(kThree);
  put(file, 16, 28 + 8);
  expect_has(error_of(file), {"tables at 28 and 36 overlap"});
  file = make_mo(kThree);
  put(file, 12, 4);
  expect_has(error_of(file), {"overlaps the header"});
  file = make_mo(kThree);
  put(file, 28 + 12, 30);
  expect_has(error_of(file), {"entry 1", "overlaps the header or a table"});
  file = make_mo(kThree);
  put(file, 28 + 8, 4);
  expect_has(error_of(file), {"entry 1", "zero byte"});
  expect_has(error_of(make_mo({{"b", "x"}, {"a", "y"}})), {"entry 1", "'a'", "'b'", "order"});
}

TEST(ReadMo, RefusesEveryTruncation) {
  const std::string file = make_mo(kThree);
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(error_of(file.substr(0, length)), "accepted") << length;
  }
}

TEST(ReadMoTolerant, GivesTheSameForASoundFile) {
  const Catalogue catalogue = read_mo_tolerant(make_mo(kThree), "x.mo");
  EXPECT_EQ(catalogue.messages.size(), 2U);
  EXPECT_FALSE(catalogue.warning.has_value());
}

TEST(ReadMoTolerant, KeepsTheSoundEntriesAndWarnsOnce) {
  std::string file = make_mo({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  put(file, 28 + 8, 0x7f7f7f7f);
  put(file, 28 + 16, 0xffffffff);
  const Catalogue catalogue = read_mo_tolerant(file, "x.mo");
  ASSERT_EQ(catalogue.messages.size(), 2U);
  EXPECT_EQ(catalogue.messages[0].id, "a");
  EXPECT_EQ(catalogue.messages[1].text, "4");
  ASSERT_TRUE(catalogue.warning.has_value());
  expect_has(*catalogue.warning, {"x.mo", "entry 1", "2139062143", "(and 1 more)", "2 trans"});
}

TEST(ReadMoTolerant, ReadsEntriesOutOfOrder) {
  const Catalogue catalogue = read_mo_tolerant(make_mo({{"b", "x"}, {"a", "y"}}), "x.mo");
  EXPECT_EQ(catalogue.messages.size(), 2U);
  EXPECT_TRUE(catalogue.warning.has_value());
}

TEST(ReadMoTolerant, WarnsForEveryTruncationAndKeepsWhatIsLeft) {
  const std::string file = make_mo(kThree);
  for (std::size_t length = 0; length < file.size(); ++length) {
    const Catalogue catalogue = read_mo_tolerant(file.substr(0, length), "x.mo");
    EXPECT_TRUE(catalogue.warning.has_value()) << length;
    EXPECT_LT(catalogue.messages.size(), 2U) << length;
  }
  EXPECT_EQ(read_mo_tolerant(file.substr(0, file.size() - 1), "x.mo").messages.size(), 1U);
}

// Every number of a small file set to hostile values: what comes out stays as small as the file.
TEST(ReadMoTolerant, NeverGrowsBeyondTheFile) {
  const std::string sound = make_mo({{"a", "12345"}, {"b", "2"}});
  for (const std::uint32_t value : {0U, 1U, 27U, 28U, 0x7f7f7f7fU, 0x80000000U, 0xffffffffU}) {
    for (std::size_t at = 0; at + 4 <= 28 + 4 * 8; at += 4) {
      std::string file = sound;
      put(file, at, value);
      const Catalogue catalogue = read_mo_tolerant(file, "x.mo");
      std::size_t bytes = catalogue.header.size();
      for (const Message& message : catalogue.messages) {
        bytes += message.id.size() + message.text.size();
      }
      EXPECT_LE(bytes, file.size()) << value << " at " << at;
      EXPECT_LE(catalogue.messages.size(), 2U);
    }
  }
}

TEST(ReadMoTolerant, StopsWhenManyStringsOverlap) {
  // 1,000 entries that all name the same 10,000 bytes.
  std::string file = make_mo(Pairs(1000, {"", ""}));
  const auto place = static_cast<std::uint32_t>(file.size());
  file += std::string(10000, 'x') + '\0';
  for (std::size_t at = 28; at < 28 + 16000; at += 8) {
    put(file, at, 10000);
    put(file, at + 4, place);
  }
  const Catalogue catalogue = read_mo_tolerant(file, "x.mo");
  EXPECT_LT(catalogue.messages.size(), 6U);
  ASSERT_TRUE(catalogue.warning.has_value());
  expect_has(*catalogue.warning, {"overlap"});
}

TEST(ReadMoTolerant, LeavesOutAnEntryWithAbsurdlyManyPlurals) {
  const Catalogue catalogue =
      read_mo_tolerant(make_mo({{"a\0as"s, std::string(100, '\0')}, {"b", "2"}}), "x.mo");
  ASSERT_EQ(catalogue.messages.size(), 1U);
  expect_has(*catalogue.warning, {"entry 0", "plural"});
}

}  // namespace
}  // namespace headrace::formats
