#include "headrace/base/text.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

namespace headrace::base {
namespace {

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string> names{"GPipe", "1F1B", "Sequential"};
  EXPECT_EQ(nearest_name("gpip", names), "GPipe");
  EXPECT_EQ(nearest_name("1F1", names), "1F1B");
  EXPECT_EQ(nearest_name("sequentail", names), "Sequential");
  EXPECT_EQ(did_you_mean("GPiep", names), "; did you mean 'GPipe'?");
}

TEST(NearestName, KeepsQuietWhenNothingIsNear) {
  const std::vector<std::string> names{"GPipe", "1F1B"};
  EXPECT_EQ(nearest_name("DualPipeV", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(did_you_mean("x", names), "");
}

TEST(EditDistance, CountsSingleEditsAndSwaps) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ab", "ba"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("LR", "lr"), 0U);
  EXPECT_EQ(edit_distance(std::string(1 << 20, 'a'), "a"), 63U);
}

TEST(Text, JoinsTrimsAndLowers) {
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}, "/"), "1/2/3");
  EXPECT_EQ(join(std::vector<int>{}), "");
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(lower_case("GPipe"), "gpipe");
}

TEST(Text, SetsThousandsApart) {
  EXPECT_EQ(thousands(0), "0");
  EXPECT_EQ(thousands(999), "999");
  EXPECT_EQ(thousands(8412), "8,412");
  EXPECT_EQ(thousands(-1234567), "-1,234,567");
  EXPECT_EQ(thousands(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(ExactText, ReadsBackToTheSameBits) {
  for (const double number : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1e22}) {
    const double back = std::strtod(exact_text(number).c_str(), nullptr);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(number));
  }
  EXPECT_EQ(exact_text(0.1F), "0.1");
  EXPECT_EQ(exact_text(-NAN), "nan");
  EXPECT_EQ(exact_text(-INFINITY), "-inf");
}

TEST(Text, RoundsToPlaces) {
  EXPECT_EQ(fixed_text(2.314149, 5), "2.31415");
  EXPECT_EQ(fixed_text(-0.5, 0), "-0");
  EXPECT_GT(fixed_text(std::numeric_limits<double>::max(), 17).size(), 300U);
  EXPECT_EQ(scientific_text(3e-4), "3.0e-04");
}

TEST(ParseInteger, TakesWholeNumbersInRangeOnly) {
  EXPECT_EQ(parse_integer("12", 0, 20), 12);
  EXPECT_EQ(parse_integer("-3", -5, 5), -3);
  for (const char* bad : {"", "x", "1x", " 1", "+1", "1.0", "21", "99999999999999999999"}) {
    EXPECT_EQ(parse_integer(bad, 0, 20), std::nullopt) << bad;
  }
}

TEST(Text, PadsByColumnsNotBytes) {
  EXPECT_EQ(pad_right("a", 3), "a  ");
  EXPECT_EQ(pad_left("a", 3), "  a");
  EXPECT_EQ(pad_left("abcd", 3), "abcd");
  EXPECT_EQ(pad_right("\xC3\xA9", 2), "\xC3\xA9 ");
  EXPECT_EQ(columns("\xE4\xB8\xAD\xE5\x9B\xBD"), 4U) << "two wide characters";
  EXPECT_EQ(columns("e\xCC\x81"), 1U) << "a letter and a combining mark";
  EXPECT_EQ(columns("a\xFF\xC3"), 3U) << "bytes that are not UTF-8";
}

TEST(Quote, ShowsForeignTextSafelyAndShortly) {
  EXPECT_EQ(quote("abc"), "'abc'");
  EXPECT_EQ(quote(std::string_view("a\0\n\xff", 4)), "'a\\x00\\x0a\\xff'");
  EXPECT_EQ(quote("0123456789", 6), "'0123'...'89' (10 bytes)");
}

TEST(PositionAt, CountsLinesAndColumnsFromOne) {
  const auto at = [](std::size_t byte) {
    const auto [line, column] = position_at("ab\ncd\n", byte);
    return std::pair(line, column);
  };
  EXPECT_EQ(at(0), std::pair(std::size_t{1}, std::size_t{1}));
  EXPECT_EQ(at(2), std::pair(std::size_t{1}, std::size_t{3}));
  EXPECT_EQ(at(4), std::pair(std::size_t{2}, std::size_t{2}));
  EXPECT_EQ(at(999), std::pair(std::size_t{3}, std::size_t{1}));
}

}  // namespace
}  // namespace headrace::base
