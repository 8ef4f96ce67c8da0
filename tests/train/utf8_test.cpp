#include "headrace/train/utf8.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/formats/utf8.h"

namespace headrace::train {
namespace {

TEST(Utf8, DecodesEachLength) {
  EXPECT_EQ(decode_utf8("a\u00e9\u20ac\U0001F600"), U"a\u00e9\u20ac\U0001F600");
  EXPECT_TRUE(formats::is_utf8("a\u00e9\u20ac\U0001F600"));
  EXPECT_TRUE(formats::is_utf8(""));
}

struct IllFormed {
  std::string bytes;
  std::size_t replacements;  // as bytes.decode("utf-8", "replace") of Python gives them
};

TEST(Utf8, ReplacesEachMaximalIllFormedPart) {
  const std::vector<IllFormed> cases = {
      {"\x80", 1},                  // a continuation alone
      {"\xc0\xaf", 2},              // overlong
      {"\xe0\x80\xaf", 3},          // overlong
      {"\xed\xa0\x80", 3},          // surrogate
      {"\xf4\x90\x80\x80", 4},      // above U+10FFFF
      {"\xf5\x80", 2},              // no such lead
      {"\xe2\x82", 1},              // cut short
      {"\xf0\x9f\x98", 1},          // cut short
      {"\xe2\x82\xe2\x82\xac", 1},  // cut short, then a whole one
      {"\xff\xfe", 2},
  };
  for (const IllFormed& bad : cases) {
    EXPECT_FALSE(formats::is_utf8(bad.bytes));
    const std::u32string points = decode_utf8(bad.bytes);
    EXPECT_EQ(static_cast<std::size_t>(std::count(points.begin(), points.end(), kReplacement)),
              bad.replacements);
    EXPECT_TRUE(formats::is_utf8(repair_utf8(bad.bytes)));
  }
}

TEST(Utf8, RepairLeavesGoodTextAsItIs) {
  EXPECT_EQ(repair_utf8("caf\u00e9"), "caf\u00e9");
  EXPECT_EQ(repair_utf8("a\xff"
                        "b"),
            "a\ufffd"
            "b");
}

}  // namespace
}  // namespace headrace::train
