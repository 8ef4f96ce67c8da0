#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/process.h"
#include "tests/base/temporary_folder.h"
#include "tests/record/small_checkpoint.h"

namespace headrace::app {

namespace {

TEST(CheckpointDiffCommand, ExitsZeroForEqualOneForDifferentThreeForUnreadable) {
  const base::TemporaryFolder folder;
  record::write_checkpoint(folder / "a", {{"s.safetensors", {{"x", {1, 2}}}}});
  record::write_checkpoint(folder / "run/checkpoints/step-00000007",
                           {{"s.safetensors", {{"x", {1, 2}}}}});
  record::write_checkpoint(folder / "c", {{"s.safetensors", {{"x", {1, 3}}}}});
  const ProcessOptions here{.folder = folder.path()};
  const Outcome equal = run({"checkpoint", "diff", "a", "run"}, here);
  EXPECT_EQ(equal.code, 0);
  EXPECT_NE(equal.out.find("equal to the bit"), std::string::npos);
  const Outcome different = run({"checkpoint", "diff", "a", "c", "--json"}, here);
  EXPECT_EQ(different.code, 1);
  const auto document = nlohmann::json::parse(different.out);
  EXPECT_EQ(document.at("differences").at(0).at("first_index"), 1);
  const Outcome unreadable = run({"checkpoint", "diff", "a", "missing"}, here);
  EXPECT_EQ(unreadable.code, 3);
  EXPECT_EQ(unreadable.out, "");
  EXPECT_NE(unreadable.err.find("no checkpoint in 'missing'"), std::string::npos);
  std::filesystem::resize_file(folder / "c" / "s.safetensors", 20);
  EXPECT_EQ(run({"checkpoint", "diff", "a", "c"}, here).code, 3);
}

}  // namespace

}  // namespace headrace::app
