#include "headrace/runtime/microbatch.h"

#include <numeric>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"

#include "tests/support/bits.h"

namespace headrace::runtime {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST(Microbatch, LargerOnesComeFirst) {
  EXPECT_EQ(microbatch_sizes(9, 3), (Sizes{3, 3, 3}));
  EXPECT_EQ(microbatch_sizes(8, 3), (Sizes{3, 3, 2}));
  EXPECT_EQ(microbatch_sizes(7, 3), (Sizes{3, 2, 2}));
}

TEST(Microbatch, FewRowsGiveFewMicrobatches) {
  EXPECT_EQ(microbatch_sizes(2, 5), (Sizes{1, 1}));
  EXPECT_EQ(microbatch_sizes(0, 5), Sizes{});
}

TEST(Microbatch, SizesAddUpAndDifferByAtMostOne) {
  for (std::int64_t rows = 1; rows <= 40; ++rows) {
    for (int m = 1; m <= 12; ++m) {
      const Sizes sizes = microbatch_sizes(rows, m);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), rows);
      EXPECT_LE(sizes.front() - sizes.back(), 1);
      EXPECT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
    }
  }
}

TEST(Microbatch, SplitSharesStorageAndJoinsBack) {
  const at::Tensor batch = at::randn({4, 8}).t();
  const auto parts = split_rows({batch}, {3, 3, 2});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1][0].data_ptr<float>(), batch.data_ptr<float>() + 3);
  EXPECT_EQ(parts[1][0].stride(1), 8);
  EXPECT_TRUE(test::same_bits(join_rows(parts)[0], batch));
}

TEST(Microbatch, RefusesUnequalRowsTellingTheShapes) {
  try {
    batch_rows({at::zeros({3, 2}), at::zeros({4})}, "input");
    FAIL() << "unequal rows were accepted";
  } catch (const base::ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("[3, 2] [4]"), std::string::npos) << e.what();
  }
  EXPECT_THROW(batch_rows({}, "input"), base::ConfigError);
  EXPECT_THROW(batch_rows({at::Tensor()}, "input"), base::ConfigError);
  EXPECT_THROW(batch_rows({at::scalar_tensor(1)}, "target"), base::ConfigError);
}

}  // namespace
}  // namespace headrace::runtime
