#include "headrace/formats/utf8.h"

#include <string_view>

#include <gtest/gtest.h>

namespace headrace::formats {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, TakesEveryLengthAndItsEdges) {
  for (const std::string_view text :
       {""sv, "plain\0text"sv, "\x7F"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv,
        "\xED\x9F\xBF"sv, "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv,
        "\xF4\x8F\xBF\xBF"sv, "a\xC3\xA9z"sv}) {
    EXPECT_TRUE(is_utf8(text)) << ::testing::PrintToString(text);
  }
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  for (const std::string_view text : {"\x80"sv,              // a continuation alone
                                      "\xC3"sv,              // cut short
                                      "\xE2\x82"sv,          // cut short
                                      "\xC3\x28"sv,          // no continuation
                                      "\xC0\xAF"sv,          // overlong '/'
                                      "\xE0\x80\xAF"sv,      // overlong
                                      "\xF0\x80\x80\xAF"sv,  // overlong
                                      "\xED\xA0\x80"sv,      // a surrogate
                                      "\xF4\x90\x80\x80"sv,  // above U+10FFFF
                                      "\xF5\x80\x80\x80"sv, "\xFF"sv, "ok\xE9"sv}) {
    EXPECT_FALSE(is_utf8(text)) << ::testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace headrace::formats
