#include "headrace/train/corpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "headrace/base/error.h"

#include "tests/formats/compile_mo.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

using test::compile_mo;

class CorpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() /
            ("headrace-corpus-" + std::to_string(getpid()) + "-" + test->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
    options_.root = root_.string();
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path path(const std::string& locale, const std::string& domain) const {
    return root_ / locale / "LC_MESSAGES" / (domain + ".mo");
  }
  void put(const std::string& locale, const std::string& domain, const std::string& bytes) const {
    fs::create_directories(path(locale, domain).parent_path());
    std::ofstream(path(locale, domain), std::ios::binary) << bytes;
  }
  Corpus read() {
    return read_corpus(options_, [this](const std::string& text) { warnings_.push_back(text); });
  }

  fs::path root_;
  CorpusOptions options_;
  std::vector<std::string> warnings_;
};

TEST_F(CorpusTest, TranslatesEachLocaleToEnglishInSortedOrder) {
  put("fr", "iso_639-3", compile_mo({{"German", "allemand"}, {"French", "fran\u00e7ais"}}));
  put("de", "iso_3166-1", compile_mo({{"France", "Frankreich"}}));
  put("de", "iso_639-2", compile_mo({{"French", "Franz\u00f6sisch"}}));
  const Corpus corpus = read();
  const std::vector<Pair> expected = {{"de", "Frankreich", "France"},
                                      {"de", "Franz\u00f6sisch", "French"},
                                      {"fr", "fran\u00e7ais", "French"},
                                      {"fr", "allemand", "German"}};
  EXPECT_EQ(corpus.pairs, expected);
  EXPECT_EQ(corpus.languages, (std::vector<std::string>{"de", "fr"}));
  EXPECT_EQ(corpus.counts.files, 3);
  EXPECT_EQ(corpus.counts.languages, 2);
  EXPECT_EQ(corpus.counts.pairs_read, 4);
  EXPECT_EQ(corpus.counts.kept, 4);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CorpusTest, ReadsEachRealFileOnceUnderItsOwnName) {
  put("nb", "iso_639-2", compile_mo({{"French", "fransk"}}));
  fs::create_symlink("iso_639-2.mo", path("nb", "iso_639"));
  // A folder that is only another name sorts first, and must not give its name to the pairs.
  fs::create_directory_symlink("nb", root_ / "ab");
  const Corpus corpus = read();
  EXPECT_EQ(corpus.pairs, (std::vector<Pair>{{"nb", "fransk", "French"}}));
  EXPECT_EQ(corpus.counts.files, 1);
  EXPECT_EQ(corpus.counts.alias_files, 3);
}

TEST_F(CorpusTest, LeavesOutEnglishAndOtherDomains) {
  for (const char* locale : {"en", "en_GB", "en@shaw", "eo"}) {
    put(locale, "iso_639-2", compile_mo({{"French", std::string(locale) + " French"}}));
  }
  put("eo", "bash", compile_mo({{"Done", "Farita"}}));
  const Corpus corpus = read();
  EXPECT_EQ(corpus.pairs, (std::vector<Pair>{{"eo", "eo French", "French"}}));
  EXPECT_EQ(corpus.counts.english_files, 3);
}

TEST_F(CorpusTest, DropsUselessPairsAndCountsWhy) {
  options_.max_source_bytes = 10;
  options_.max_target_bytes = 8;
  put("fr", "iso_639-2",
      compile_mo({{"Bad", "\xff"},
                  {"Blank", " "},
                  {"Same", "Same"},
                  {"Source", "12345678901"},
                  {"Target890", "x"},
                  {"Edge5678", "1234567890"}}));
  put("fr", "iso_639-3", compile_mo({{"Edge5678", "1234567890"}}));
  const Corpus corpus = read();
  EXPECT_EQ(corpus.pairs, (std::vector<Pair>{{"fr", "1234567890", "Edge5678"}}));
  EXPECT_EQ(corpus.counts.pairs_read, 7);
  EXPECT_EQ(corpus.counts.dropped_not_utf8, 1);
  EXPECT_EQ(corpus.counts.dropped_empty, 1);
  EXPECT_EQ(corpus.counts.dropped_identical, 1);
  EXPECT_EQ(corpus.counts.dropped_long, 2);
  EXPECT_EQ(corpus.counts.dropped_repeated, 1);
  EXPECT_EQ(corpus.counts.kept, 1);
}

TEST_F(CorpusTest, GoesOnAfterABrokenCatalogueWithOneWarningThatNamesIt) {
  put("de", "iso_639-2", "this is no catalogue");
  put("fr", "iso_639-2", compile_mo({{"French", "fran\u00e7ais"}}));
  const Corpus corpus = read();
  EXPECT_EQ(corpus.pairs.size(), 1U);
  EXPECT_EQ(corpus.counts.broken_files, 1);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find(path("de", "iso_639-2").string()), std::string::npos);
}

TEST_F(CorpusTest, RefusesAnEmptyCorpusNamingFolderAndPackage) {
  for (const bool exists : {true, false}) {
    if (!exists) options_.root += "/nowhere";
    try {
      read();
      FAIL() << "accepted";
    } catch (const base::ConfigError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(options_.root), std::string::npos) << text;
      EXPECT_NE(text.find("iso-codes"), std::string::npos) << text;
    }
  }
}

std::vector<Pair> many_pairs() {
  std::vector<Pair> pairs;
  for (int i = 0; i < 20000; ++i) {
    const std::string number = std::to_string(i / 4);
    pairs.push_back({i % 2 == 0 ? "de" : "fr", "quelle " + std::to_string(i), "Name " + number});
  }
  return pairs;
}

TEST(Split, HoldsOutTwoPerCentOfTheEnglishStringsAndOfTheOtherPairs) {
  const Split parts = split(many_pairs());
  EXPECT_EQ(parts.training.size() + parts.seen.size() + parts.unseen.size(), 20000U);
  EXPECT_EQ(parts.unseen.size() % 4, 0U);  // all four pairs of a string go together
  EXPECT_NEAR(static_cast<double>(parts.unseen.size()), 400, 100);
  EXPECT_NEAR(static_cast<double>(parts.seen.size()), 392, 100);
}

TEST(Split, KeepsSpellingsThatDifferInCaseTogether) {
  for (const Pair& pair : many_pairs()) {
    Pair other = pair;
    std::transform(other.target.begin(), other.target.end(), other.target.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    EXPECT_EQ(part_of(other), part_of(pair));
    other.language = "nl";
    EXPECT_EQ(part_of(other) == Part::kUnseen, part_of(pair) == Part::kUnseen)
        << "an English string is unseen in every language";
  }
}

TEST(Split, NeverChangesBetweenVersions) {
  // The first held-out pairs of the list, by number: a new hash would leak old training data.
  std::vector<std::string> unseen;
  std::vector<std::string> seen;
  for (const Pair& pair : many_pairs()) {
    if (part_of(pair) == Part::kUnseen) unseen.push_back(pair.source);
    if (part_of(pair) == Part::kSeen) seen.push_back(pair.source);
  }
  EXPECT_EQ(unseen[0], "quelle 548");
  EXPECT_EQ(seen[0], "quelle 57");
}

TEST(Sample, DependsOnNeitherTheOrderNorTheCount) {
  std::vector<Pair> pairs = many_pairs();
  const std::vector<Pair> ten = sample(pairs, 10);
  std::reverse(pairs.begin(), pairs.end());
  const std::vector<Pair> twenty = sample(pairs, 20);
  ASSERT_EQ(ten.size(), 10U);
  EXPECT_TRUE(std::equal(ten.begin(), ten.end(), twenty.begin()));
  EXPECT_EQ(sample(pairs, 1'000'000).size(), pairs.size());
  EXPECT_TRUE(sample({}, 5).empty());
}

}  // namespace
}  // namespace headrace::train
