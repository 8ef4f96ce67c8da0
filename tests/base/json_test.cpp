#include "headrace/base/json.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/base/error.h"

#include "message_of.h"

namespace headrace::base {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& text, const JsonLimits& limits = {}) {
  return message_of<IoError>([&] { parse_json(text, "f.json", limits); });
}

TEST(ParseJson, BuildsTheDocumentThatItReads) {
  const std::string text =
      R"({"a":[1,-2,3.5,true,null,"x",{"b":[]}],"c":{},"d":18446744073709551615})";
  EXPECT_EQ(parse_json(text, "f"), json::parse(text));
  EXPECT_EQ(parse_json("7", "f"), json(7));
}

TEST(ParseJson, TellsLineAndColumn) {
  EXPECT_THAT(refusal("{\n  \"a\": 1,\n  \"b\": x\n}"), HasSubstr("f.json:3:8: not JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("f.json:1:1"));
  EXPECT_THAT(refusal("[1, 2"), HasSubstr("f.json:1:"));
  EXPECT_THAT(refusal("[1]]"), HasSubstr("f.json:1:4"));
  EXPECT_THAT(refusal("[1e400]"), AllOf(HasSubstr("f.json:1:"), HasSubstr("1e400")));
  EXPECT_THAT(refusal("\"\xff\""), HasSubstr("f.json:1:"));
}

TEST(ParseJson, RefusesAKeyTwice) {
  EXPECT_THAT(refusal(R"({"a":1,"a":2})"), AllOf(HasSubstr("'a'"), HasSubstr("twice")));
  EXPECT_NO_THROW(parse_json(R"({"a":1,"b":{"a":2}})", "f"));
}

TEST(ParseJson, RefusesWhatIsDeeperOrLongerThanItsLimits) {
  EXPECT_NO_THROW(parse_json("[[[]]]", "f", {.depth = 3}));
  EXPECT_THAT(refusal("[[[[]]]]", {.depth = 3}), HasSubstr("more than 3"));
  EXPECT_THAT(refusal(std::string(1000000, '[')), HasSubstr("more than 64"));
  EXPECT_THAT(refusal("[1,2,3]", {.bytes = 6}), HasSubstr("at most 6"));
}

TEST(JsonText, WritesNumbersThatReadBackToTheSameBits) {
  for (const double number : {0.1, 1.0 / 3, 1e-310, 1.7976931348623157e308, -0.0}) {
    const double back = parse_json(json_text(json(number), -1), "f").get<double>();
    EXPECT_EQ(back, number);
    EXPECT_EQ(std::signbit(back), std::signbit(number));
  }
}

TEST(JsonText, WritesNullForWhatIsNotFiniteAndSurvivesBadUtf8) {
  EXPECT_EQ(json_text(json{NAN, INFINITY}, -1), "[null,null]");
  EXPECT_EQ(json_text(json("\xff"), -1), "\"\xEF\xBF\xBD\"");
}

class JsonObjectReads : public testing::Test {
 protected:
  json document_ = json::parse(R"({"format_version": 2, "text": "x", "yes": true, "big": 1e300,
    "huge": 18446744073709551615, "inner": {"n": 3}, "list": [{"n": 1}, {"n": "two"}]})");
  JsonObject object_{document_, "f.json"};
};

TEST_F(JsonObjectReads, GivesWhatIsThere) {
  EXPECT_EQ(object_.string("text"), "x");
  EXPECT_TRUE(object_.boolean("yes"));
  EXPECT_EQ(object_.number("big"), 1e300);
  EXPECT_EQ(object_.object("inner").integer("n"), 3);
  EXPECT_EQ(object_.objects("list", 2).at(0).integer("n"), 1);
  EXPECT_TRUE(object_.has("yes"));
  EXPECT_FALSE(object_.has("no"));
}

TEST_F(JsonObjectReads, NamesTheFileAndThePathOfWhatIsWrong) {
  EXPECT_THAT(message_of<IoError>([&] { object_.objects("list", 2).at(1).integer("n"); }),
              AllOf(HasSubstr("f.json"), HasSubstr("'list[1].n'"), HasSubstr("integer")));
  EXPECT_THAT(message_of<IoError>([&] { object_.object("inner").number("m"); }),
              AllOf(HasSubstr("'inner.m'"), HasSubstr("missing")));
  EXPECT_THAT(message_of<IoError>([&] { object_.string("tex"); }), HasSubstr("'text'"));
}

TEST_F(JsonObjectReads, RefusesOtherTypesRangesAndSizes) {
  EXPECT_THROW(object_.string("yes"), IoError);
  EXPECT_THROW(object_.boolean("text"), IoError);
  EXPECT_THROW(object_.integer("big"), IoError);
  EXPECT_THROW(object_.integer("huge"), IoError);
  EXPECT_THROW(object_.number("text"), IoError);
  EXPECT_THROW(object_.object("list"), IoError);
  EXPECT_THROW(object_.objects("list", 1), IoError);
  EXPECT_THROW(object_.array("inner", 9), IoError);
  EXPECT_THAT(message_of<IoError>([&] { object_.number("big", 0, 1); }), HasSubstr("[0, 1]"));
  EXPECT_THROW(JsonObject(document_["list"], "f"), IoError);
}

TEST_F(JsonObjectReads, ChecksVersionAndUnknownKeys) {
  EXPECT_NO_THROW(object_.check_format_version(2));
  EXPECT_THAT(message_of<IoError>([&] { object_.check_format_version(1); }),
              AllOf(HasSubstr("is 2"), HasSubstr("version 1")));
  const JsonObject inner = object_.object("inner");
  EXPECT_NO_THROW(inner.allow_only({"n", "m"}));
  EXPECT_THAT(message_of<IoError>([&] {
                inner.allow_only({"m", "nn"});
              }),
              AllOf(HasSubstr("'inner.n'"), HasSubstr("unknown")));
}

}  // namespace
}  // namespace headrace::base
