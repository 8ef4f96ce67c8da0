#include "headrace/train/chrf.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::train {
namespace {

using Texts = std::vector<std::string>;

struct Golden {
  const char* name;
  Texts hypotheses;
  Texts references;
  double score;  // sacrebleu 2.6.0, printed by tools/golden/chrf.py
};

std::vector<Golden> goldens() {
  return {
      {"identical", {"Republic of Bulgaria"}, {"Republic of Bulgaria"}, 100.0},
      {"near", {"Republik of Bulgaria", "Kagayan"}, {"Republic of Bulgaria", "Cagayan"}, 75.272055},
      {"empty hypothesis", {"", "Cagayan"}, {"Republic of Bulgaria", "Cagayan"}, 25.678483},
      {"all hypotheses empty", {"", ""}, {"Republic of Bulgaria", "Cagayan"}, 0.0},
      {"short", {"ab", "x"}, {"abc", "xyzw"}, 36.423841},
      {"shorter reference", {"abcdefghij"}, {"abc"}, 57.902584},
      {"not ASCII",
       {"\u00d6sterreich", "\u65e5\u672c\u56fd", "\u039a\u03cd\u03c0\u03c1\u03bf\u03c2"},
       {"\u00d6sterreich (AT)", "\u65e5\u672c", "\u041a\u0438\u043f\u0440"},
       61.291267},
      {"spaces", {"New\u00a0 Zealand", " a b\tc "}, {"New Zealand", "abc"}, 100.0},
      {"repeated", {"aaaaaaaaaa", "the the the"}, {"aaaa", "the cat"}, 29.270062},
      {"nothing in common", {"qqqqqqq"}, {"zzzzzzz"}, 0.0},
  };
}

TEST(Chrf, AgreesWithSacrebleu) {
  for (const Golden& golden : goldens()) {
    EXPECT_NEAR(chrf(golden.hypotheses, golden.references), golden.score, 1e-5) << golden.name;
  }
}

// By hand: "ab" against "abc": order 1: 2 of 2, 2 of 3; order 2: 1 of 1, 1 of 2; order 3: the
// hypothesis has none, so it does not count. P = 1, R = (2/3 + 1/2) / 2 = 7/12.
// F = 5 P R / (4 P + R) = (35/12) / (55/12) = 7/11.
TEST(Chrf, IsTheFScoreOfTheAverageOfOrdersThatBothSidesHave) {
  EXPECT_NEAR(chrf(Texts{"ab"}, Texts{"abc"}), 700.0 / 11.0, 1e-12);
}

TEST(Chrf, SumsCountsOverTheCorpusInsteadOfAveragingScores) {
  // One character each: 1 of 1 right and 0 of 3 right make 1 of 4 on both sides.
  EXPECT_NEAR(chrf(Texts{"a", "b", "b", "b"}, Texts{"a", "c", "c", "c"}), 25.0, 1e-12);
}

TEST(Chrf, WeighsRecallMoreThanPrecision) {
  const Texts longer{"abcdefgh"};
  const Texts shorter{"abcdef"};
  EXPECT_GT(chrf(longer, shorter), chrf(shorter, longer));
}

TEST(Chrf, TakesBytesThatAreNotUtf8) {
  EXPECT_NEAR(chrf(Texts{"\xff\xfe"}, Texts{"ab"}), 0.0, 1e-12);
  EXPECT_NEAR(chrf(Texts{"\xff"}, Texts{"\ufffd"}), 100.0, 1e-12);
}

TEST(Chrf, OfNothingIsZero) {
  EXPECT_EQ(chrf({}, {}), 0.0);
  EXPECT_EQ(chrf(Texts{"a"}, Texts{""}), 0.0);
}

TEST(Chrf, RefusesListsOfDifferentLengthsWithTheNumbers) {
  try {
    chrf(Texts{"a", "b"}, Texts{"a"});
    FAIL() << "accepted";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("2 hypotheses, 1 references"), std::string::npos);
  }
  EXPECT_THROW(exact_match(Texts{}, Texts{"a"}), base::ConfigError);
}

TEST(ExactMatch, IsTheShareOfEqualTextsInPerCent) {
  EXPECT_EQ(exact_match(Texts{"a", "B", "c", ""}, Texts{"a", "b", "c", ""}), 75.0);
  EXPECT_EQ(exact_match({}, {}), 0.0);
}

}  // namespace
}  // namespace headrace::train
