#include "headrace/optim/norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

namespace headrace::optim {
namespace {

at::Tensor normal(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return at::randn(sizes, at::TensorOptions().dtype(at::kDouble)).to(type);
}

double naive_sum_of_squares(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kDouble).contiguous();
  const double* data = wide.const_data_ptr<double>();
  double sum = 0;
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    sum += data[i] * data[i];
  }
  return sum;
}

TEST(SquaredNorm, KnowsClosedValues) {
  EXPECT_EQ(squared_norm(at::Tensor()), 0.0);
  EXPECT_EQ(squared_norm(at::empty({0, 3})), 0.0);
  EXPECT_EQ(squared_norm(at::full({}, 3.0F)), 9.0);
  EXPECT_EQ(squared_norm(at::full({10000}, 2.0F)), 40000.0);
  // 1^2 + 2^2 + ... + n^2 = n (n + 1) (2n + 1) / 6, exact in fp64.
  EXPECT_EQ(squared_norm(at::arange(1, 9001, at::kFloat)), 9000.0 * 9001.0 * 18001.0 / 6.0);
}

TEST(SquaredNorm, DoesNotRoundWhatFp32Would) {
  const at::Tensor x = at::cat({at::full({1}, 8192.0F), at::full({5}, 0.5F)});
  EXPECT_EQ(squared_norm(x), 8192.0 * 8192.0 + 5 * 0.25);
}

class NormOfLength : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(NormOfLength, EqualsTheNaiveSum) {
  at::manual_seed(7);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor x = normal({GetParam()}, type);
    const double naive = naive_sum_of_squares(x);
    EXPECT_NEAR(squared_norm(x), naive, 1e-12 * naive) << type;
    EXPECT_EQ(chunk_squares(x).size(), (GetParam() + kNormChunk - 1) / kNormChunk) << type;
  }
}

INSTANTIATE_TEST_SUITE_P(ChunkEdges, NormOfLength,
                         ::testing::Values(1, 7, 8, 9, 4095, 4096, 4097, 8191, 8192, 8193, 50001,
                                           256 * 4096 + 17));

TEST(SquaredNorm, TakesStridedTensorsInLogicalOrder) {
  at::manual_seed(8);
  const at::Tensor base = normal({130, 70});
  const std::vector<at::Tensor> views{base.t(), base.slice(1, 3, 60), base.slice(0, 0, 130, 3),
                                      base.select(1, 5), at::full({1}, 2.0F).expand({5000})};
  for (const at::Tensor& view : views) {
    EXPECT_EQ(squared_norm(view), squared_norm(view.contiguous()));
    EXPECT_EQ(chunk_squares(view), chunk_squares(view.contiguous()));
  }
  const at::Tensor image = normal({4, 8, 20, 20});
  EXPECT_EQ(squared_norm(image.contiguous(at::MemoryFormat::ChannelsLast)), squared_norm(image));
}

TEST(SquaredNorm, ShardsCutOnChunkEdgesGiveTheChunksOfTheWhole) {
  at::manual_seed(9);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor whole = normal({5 * kNormChunk + 100}, type);
    const std::vector<double> expected = chunk_squares(whole);
    for (const std::int64_t cut : {1, 2, 4}) {
      std::vector<double> joined = chunk_squares(whole.slice(0, 0, cut * kNormChunk));
      const std::vector<double> rest = chunk_squares(whole.slice(0, cut * kNormChunk));
      joined.insert(joined.end(), rest.begin(), rest.end());
      EXPECT_EQ(joined, expected) << type << " cut at chunk " << cut;
      EXPECT_EQ(global_norm(joined), std::sqrt(squared_norm(whole))) << type;
    }
  }
}

TEST(SquaredNorm, IsNotFiniteIfOneElementIsNot) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf}) {
    for (const std::int64_t place : {0, 4095, 4096, 9999}) {
      at::Tensor x = at::ones({10000}, type);
      x[place] = std::numeric_limits<float>::infinity();
      EXPECT_TRUE(std::isinf(squared_norm(x))) << type << " " << place;
      x[place] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(squared_norm(x))) << type << " " << place;
    }
  }
}

TEST(SquaredNorm, StaysFiniteForLargeFp32) {
  EXPECT_TRUE(std::isfinite(squared_norm(at::full({5000}, std::numeric_limits<float>::max()))));
}

TEST(SquaredNorm, LeavesNoGraphBehind) {
  const at::Tensor x = at::ones({10}).requires_grad_();
  EXPECT_EQ(squared_norm(x), 10.0);
}

TEST(SquaredNorm, RefusesSparseAndIntegerGradients) {
  EXPECT_THROW(squared_norm(at::ones({3, 4}).to_sparse()), base::ConfigError);
  EXPECT_THROW(squared_norm(at::ones({3}, at::kLong)), base::ConfigError);
  try {
    squared_norm(at::ones({3, 4}).to_sparse());
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("sparse(false)"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("[3, 4]"), std::string::npos) << error.what();
  }
}

TEST(GlobalNorm, FoldsFromTheLeft) {
  EXPECT_EQ(global_norm({}), 0.0);
  EXPECT_EQ(global_norm(std::vector<double>{9.0, 16.0}), 5.0);
  // (1 + 1e16) loses the 1; (1 - 1e16 ...) in another order would not.
  const std::vector<double> squares{1.0, 1e16, 1.0, 1.0};
  EXPECT_EQ(global_norm(squares), std::sqrt(((1.0 + 1e16) + 1.0) + 1.0));
}

TEST(ClipScale, NeverEnlargesAndKeepsNaN) {
  EXPECT_EQ(clip_scale(0.0, 1.0), 1.0);
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(2.0, 1.0), 1.0 / (2.0 + 1e-6));
  EXPECT_EQ(clip_scale(std::numeric_limits<double>::infinity(), 1.0), 0.0);
  EXPECT_TRUE(std::isnan(clip_scale(std::numeric_limits<double>::quiet_NaN(), 1.0)));
}

}  // namespace
}  // namespace headrace::optim
