#include "headrace/plan/profile.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/base/error.h"

namespace headrace::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Profile sample() {
  return {.microbatch_rows = 8,
          .layers = {{.name = "embed",
                      .forward_seconds = 0.1,
                      .input_gradient_seconds = 0,
                      .weight_gradient_seconds = 1.0 / 3,
                      .parameter_bytes = 1 << 20,
                      .output_bytes = 4096,
                      .activation_bytes = 0},
                     {.name = "head \"2\"",
                      .forward_seconds = 5e-324,
                      .input_gradient_seconds = 2,
                      .weight_gradient_seconds = 3e-7,
                      .parameter_bytes = std::int64_t{1} << 53U,
                      .output_bytes = 1,
                      .activation_bytes = 2}}};
}

std::string refusal(const std::string& json) {
  try {
    parse_profile(json, "p.json");
  } catch (const base::IoError& e) {
    return e.what();
  }
  ADD_FAILURE() << "not refused: " << json;
  return {};
}

// The sample with one key of its second layer replaced, or taken out.
std::string with(const std::string& key, const nlohmann::json& value) {
  auto document = nlohmann::json::parse(to_json(sample()));
  document["layers"][1][key] = value;
  return document.dump();
}

std::string without(const std::string& key) {
  auto document = nlohmann::json::parse(to_json(sample()));
  document["layers"][1].erase(key);
  return document.dump();
}

TEST(Profile, ReadsBackToTheSameBits) {
  EXPECT_EQ(parse_profile(to_json(sample()), "p.json"), sample());
  const Profile empty{.microbatch_rows = 1, .layers = {}};
  EXPECT_EQ(parse_profile(to_json(empty), "p.json"), empty);
}

TEST(Profile, IsWrittenAsOnTheFormatsPage) {
  const Profile profile{.microbatch_rows = 8, .layers = {sample().layers[0]}};
  EXPECT_EQ(to_json(profile), R"({
  "format_version": 1,
  "microbatch_rows": 8,
  "layers": [
    {
      "name": "embed",
      "forward_seconds": 0.1,
      "input_gradient_seconds": 0.0,
      "weight_gradient_seconds": 0.3333333333333333,
      "parameter_bytes": 1048576,
      "output_bytes": 4096,
      "activation_bytes": 0
    }
  ]
}
)");
}

TEST(Profile, NamesTheKeyThatIsMissing) {
  for (const char* key :
       {"name", "forward_seconds", "input_gradient_seconds", "weight_gradient_seconds",
        "parameter_bytes", "output_bytes", "activation_bytes"}) {
    EXPECT_THAT(refusal(without(key)),
                AllOf(HasSubstr("p.json"), HasSubstr(std::string("layers[1].") + key),
                      HasSubstr("missing")));
  }
}

TEST(Profile, RefusesNegativeNonFiniteAndHugeNumbers) {
  EXPECT_THAT(refusal(with("forward_seconds", -1e-9)), HasSubstr("layers[1].forward_seconds"));
  EXPECT_THAT(refusal(with("forward_seconds", nullptr)), HasSubstr("must be a number"));
  EXPECT_THAT(refusal(with("forward_seconds", 1e300)), HasSubstr("found 1e+300"));
  EXPECT_THAT(refusal(with("parameter_bytes", -1)), HasSubstr("found -1"));
  EXPECT_THAT(refusal(with("parameter_bytes", 1.5)), HasSubstr("must be an integer"));
  EXPECT_THAT(refusal(with("output_bytes", std::numeric_limits<std::uint64_t>::max())),
              HasSubstr("found 18446744073709551615"));
  EXPECT_THAT(refusal(R"({"format_version": 1, "microbatch_rows": 8, "layers": [1e400]})"),
              HasSubstr("p.json:1:"));
}

TEST(Profile, RefusesOtherVersionsKeysAndDocuments) {
  EXPECT_THAT(refusal(R"({"format_version": 2})"), HasSubstr("reads version 1"));
  EXPECT_THAT(refusal(R"({"layers": []})"), HasSubstr("format_version"));
  EXPECT_THAT(refusal(with("forward_second", 1)), HasSubstr("did you mean 'forward_seconds'"));
  EXPECT_THAT(refusal("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(refusal(""), HasSubstr("p.json:1:1"));
  EXPECT_THAT(refusal(R"({"format_version": 1, "microbatch_rows": 0, "layers": []})"),
              HasSubstr("microbatch_rows"));
}

TEST(Profile, BoundsTheNumberOfLayers) {
  std::string json = R"({"format_version": 1, "microbatch_rows": 1, "layers": [)";
  for (int layer = 0; layer < 100000; ++layer) {
    json += "{},";
  }
  EXPECT_THAT(refusal(json + "{}]}"), HasSubstr("at most 100000"));
}

}  // namespace
}  // namespace headrace::plan
