#include "headrace/train/checkpoint.h"

#include <cstring>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/formats/safetensors.h"

#include "tests/base/temporary_folder.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(SaveCheckpoint, WritesEveryTensorWithItsBytesShapeAndDtype) {
  const base::TemporaryFolder folder;
  const at::Tensor transposed = at::arange(6, at::kFloat).view({2, 3}).t();
  const NamedTensors tensors{{"a.weight", transposed},
                             {"counter", at::scalar_tensor(7, at::kLong)},
                             {"empty", at::empty({0, 3})},
                             {"half", at::ones({2}, at::kHalf)},
                             {"brain", at::ones({2}, at::kBFloat16)},
                             {"double", at::ones({2}, at::kDouble)},
                             {"mask", at::ones({3}, at::kBool)},
                             {"bytes", at::ones({3}, at::kByte)}};
  record::Manifest manifest;
  manifest.step = 5;
  manifest.seed = 3;
  manifest.layers_per_stage = {2, 1};
  save_checkpoint(folder / "runs/x/step-00000005", tensors, manifest);

  const fs::path saved = folder / "runs/x/step-00000005";
  EXPECT_EQ(names_in(saved),
            (std::vector<std::string>{"manifest.json", "model-00001-of-00001.safetensors"}));
  EXPECT_EQ(names_in(folder / "runs/x"), (std::vector<std::string>{"step-00000005"}))
      << "the temporary folder is gone";
  const record::Manifest read = record::read_manifest(saved);
  record::verify(saved, read);
  EXPECT_EQ(read.step, 5);
  EXPECT_EQ(read.seed, 3);
  EXPECT_EQ(read.layers_per_stage, (std::vector<std::int64_t>{2, 1}));
  ASSERT_EQ(read.tensors.size(), tensors.size());
  EXPECT_EQ(read.tensors.at("a.weight").shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(read.tensors.at("a.weight").dtype, "F32");
  EXPECT_EQ(read.tensors.at("counter").shape, (std::vector<std::int64_t>{}));
  EXPECT_EQ(read.tensors.at("counter").dtype, "I64");
  EXPECT_EQ(read.tensors.at("empty").shape, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(read.tensors.at("half").dtype, "F16");
  EXPECT_EQ(read.tensors.at("brain").dtype, "BF16");
  EXPECT_EQ(read.tensors.at("double").dtype, "F64");
  EXPECT_EQ(read.tensors.at("mask").dtype, "BOOL");
  EXPECT_EQ(read.tensors.at("bytes").dtype, "U8");
}

TEST(SaveCheckpoint, GivesValuesInRowMajorOrderWhateverTheStrides) {
  const base::TemporaryFolder folder;
  const at::Tensor transposed = at::arange(6, at::kFloat).view({2, 3}).t().requires_grad_();
  save_checkpoint(folder / "a", {{"x", transposed}}, {});
  save_checkpoint(folder / "b", {{"x", transposed.detach().contiguous()}}, {});
  EXPECT_EQ(record::read_manifest(folder / "a").tensors.at("x").sha256,
            record::read_manifest(folder / "b").tensors.at("x").sha256);
}

TEST(SaveCheckpoint, NeverWritesOverAnotherOne) {
  const base::TemporaryFolder folder;
  save_checkpoint(folder / "a", {{"x", at::ones({2})}}, {});
  EXPECT_THROW(save_checkpoint(folder / "a", {{"x", at::zeros({2})}}, {}), base::ConfigError);
  record::verify(folder / "a", record::read_manifest(folder / "a"));
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a"}));
}

TEST(SaveCheckpoint, LeavesNothingBehindWhenItFails) {
  const base::TemporaryFolder folder;
  EXPECT_THROW(save_checkpoint(folder / "a",
                               {{"x", at::ones({2})}, {"z", at::ones({2}, at::kComplexFloat)}}, {}),
               base::ConfigError);
  EXPECT_THROW(save_checkpoint(folder / "a", {{"x", at::ones({2})}, {"x", at::ones({2})}}, {}),
               base::Error);
  EXPECT_TRUE(names_in(folder.path()).empty());
  base::write_file(folder / "file", "in the way");
  EXPECT_THROW(save_checkpoint(folder / "file/a", {{"x", at::ones({2})}}, {}), base::IoError);
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"file"}));
}

}  // namespace
}  // namespace headrace::train
