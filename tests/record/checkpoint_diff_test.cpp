#include "headrace/record/checkpoint_diff.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/file.h"

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/record/small_checkpoint.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;
using Kind = TensorDifference::Kind;

class CheckpointDiffTest : public testing::Test {
 protected:
  CheckpointDiff diff(const Shards& a, const Shards& b) {
    write_checkpoint(folder_ / "a", a);
    write_checkpoint(folder_ / "b", b);
    return diff_checkpoints(folder_ / "a", folder_ / "b");
  }

  base::TemporaryFolder folder_;
};

TEST_F(CheckpointDiffTest, FindsEqualTensorsInOtherShards) {
  const CheckpointDiff result =
      diff({{"one.safetensors", {{"x", {1, 2, 3}}, {"y", {4}}}}},
           {{"one.safetensors", {{"y", {4}}}}, {"two.safetensors", {{"x", {1, 2, 3}}}}});
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.tensors_compared, 2);
  EXPECT_NE(to_text(result).find("equal to the bit"), std::string::npos);
}

TEST_F(CheckpointDiffTest, FindsTheFirstElementThatDiffersAndTheLargestDifference) {
  const CheckpointDiff result = diff({{"s.safetensors", {{"x", {1, 2, 3, 4}}, {"y", {4}}}}},
                                     {{"s.safetensors", {{"x", {1, 2.5, 3, 3.25}}, {"y", {4}}}}});
  ASSERT_EQ(result.differences.size(), 1U);
  const TensorDifference& difference = result.differences.front();
  EXPECT_EQ(difference.tensor, "x");
  EXPECT_EQ(difference.kind, Kind::kValues);
  EXPECT_EQ(difference.first_index, 1);
  EXPECT_EQ(difference.different_elements, 2);
  EXPECT_EQ(difference.max_abs, 0.75);
}

TEST_F(CheckpointDiffTest, ComparesBitsAndNotValues) {
  const float nan = std::nanf("");
  EXPECT_TRUE(
      diff({{"s.safetensors", {{"x", {nan}}}}}, {{"s.safetensors", {{"x", {nan}}}}}).equal());
  const CheckpointDiff zeros =
      diff({{"s.safetensors", {{"x", {0.0F}}}}}, {{"s.safetensors", {{"x", {-0.0F}}}}});
  ASSERT_EQ(zeros.differences.size(), 1U);
  EXPECT_EQ(zeros.differences.front().max_abs, 0.0);
}

TEST_F(CheckpointDiffTest, FindsADifferenceBehindTheFirstPiece) {
  std::vector<float> values(700'000, 1.0F);
  std::vector<float> other = values;
  other[600'001] = 2.0F;
  const CheckpointDiff result =
      diff({{"s.safetensors", {{"x", values}}}}, {{"s.safetensors", {{"x", other}}}});
  ASSERT_EQ(result.differences.size(), 1U);
  EXPECT_EQ(result.differences.front().first_index, 600'001);
  EXPECT_EQ(result.differences.front().different_elements, 1);
}

TEST_F(CheckpointDiffTest, NamesTensorsThatOnlyOneHasAndOtherShapes) {
  const CheckpointDiff result = diff({{"s.safetensors", {{"a", {1}}, {"x", {1, 2}}}}},
                                     {{"s.safetensors", {{"b", {1}}, {"x", {1, 2, 3}}}}});
  ASSERT_EQ(result.differences.size(), 3U);
  EXPECT_EQ(result.differences[0].kind, Kind::kOnlyInA);
  EXPECT_EQ(result.differences[1].kind, Kind::kShape);
  EXPECT_EQ(result.differences[1].detail, "[2] and [3]");
  EXPECT_EQ(result.differences[2].kind, Kind::kOnlyInB);
  EXPECT_EQ(result.tensors_compared, 0);
}

TEST_F(CheckpointDiffTest, PrintsOneJsonDocument) {
  const CheckpointDiff result =
      diff({{"s.safetensors", {{"x", {1, std::numeric_limits<float>::infinity()}}}}},
           {{"s.safetensors", {{"x", {1, 2}}}}});
  const nlohmann::json document = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(document.at("format_version"), 1);
  EXPECT_EQ(document.at("equal"), false);
  EXPECT_EQ(document.at("tensors_compared"), 1);
  const nlohmann::json& item = document.at("differences").at(0);
  EXPECT_EQ(item.at("tensor"), "x");
  EXPECT_EQ(item.at("difference"), "values");
  EXPECT_EQ(item.at("first_index"), 1);
  EXPECT_TRUE(item.at("max_abs_difference").is_null());
  EXPECT_EQ(item.at("nonfinite"), true);
}

TEST_F(CheckpointDiffTest, TakesTheNewestCheckpointOfARunByNumber) {
  const Shards shards = {{"s.safetensors", {{"x", {1}}}}};
  const fs::path run = folder_ / "run";
  write_checkpoint(run / "checkpoints/step-00000900", shards);
  write_checkpoint(run / "checkpoints/step-100000000", shards);
  fs::create_directories(run / "checkpoints/step-900000000");  // without a manifest: incomplete
  EXPECT_EQ(find_checkpoint(run), run / "checkpoints/step-100000000");
  EXPECT_EQ(find_checkpoint(run / "checkpoints"), run / "checkpoints/step-100000000");
  EXPECT_EQ(find_checkpoint(run / "checkpoints/step-00000900"), run / "checkpoints/step-00000900");
}

TEST_F(CheckpointDiffTest, RefusesWhatIsNoCheckpointOrIsDamaged) {
  const Shards shards = {{"s.safetensors", {{"x", {1}}}}};
  write_checkpoint(folder_ / "a", shards);
  write_checkpoint(folder_ / "b", shards);
  EXPECT_NE(base::message_of<base::IoError>([&] {
              (void)diff_checkpoints(folder_ / "a", folder_ / "none");
            }).find("no checkpoint in"),
            std::string::npos);
  fs::resize_file(folder_ / "b" / "s.safetensors", 20);
  EXPECT_THROW((void)diff_checkpoints(folder_ / "a", folder_ / "b"), base::IoError);
}

}  // namespace

}  // namespace headrace::record
