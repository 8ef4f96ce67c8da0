#include "headrace/model/keyed_init.h"

#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/model/keyed_generator.h"

namespace headrace::model {
namespace {

at::Tensor drawn(std::uint64_t seed, const char* name) {
  at::Tensor tensor = at::empty({50, 20});
  keyed_normal_(tensor, seed, name, 1.0);
  return tensor;
}

TEST(KeyedGenerator, UsesAllBitsOfTheKey) {
  std::set<float> firsts;
  for (int bit = 0; bit < 64; ++bit) {
    firsts.insert(
        at::rand({1}, keyed_generator(std::uint64_t{1} << bit), at::kFloat).item<float>());
  }
  EXPECT_GE(firsts.size(), 63U);
}

TEST(KeyedGenerator, DrawsUniformNumbersOverManyKeys) {
  double sum = 0;
  double squares = 0;
  const int num_keys = 4000;
  for (std::uint64_t key = 0; key < num_keys; ++key) {
    const double value =
        at::rand({1}, keyed_generator(mix_key({1, 2, key})), at::kDouble).item<double>();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / num_keys, 0.5, 0.02);
  EXPECT_NEAR(squares / num_keys, 1.0 / 3, 0.02);
}

TEST(MixKey, TellsOrderAndNumberOfWordsApart) {
  EXPECT_NE(mix_key({1, 2}), mix_key({2, 1}));
  EXPECT_NE(mix_key({0}), mix_key({0, 0}));
  EXPECT_NE(mix_key({1, 0}), mix_key({0, 1}));
}

TEST(HashName, IsTheFnv1aThatFilesMayRelyOn) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cULL);
}

TEST(KeyedInit, DependsOnSeedAndNameOnly) {
  const at::Tensor here = drawn(1, "0.weight");
  at::Tensor there;
  std::thread([&there] { there = drawn(1, "0.weight"); }).join();
  EXPECT_TRUE(at::equal(here, there));
  EXPECT_FALSE(at::equal(here, drawn(2, "0.weight")));
  EXPECT_FALSE(at::equal(here, drawn(1, "1.weight")));
}

TEST(KeyedInit, LeavesTheGlobalGeneratorAlone) {
  const at::Tensor before = at::detail::getDefaultCPUGenerator().get_state();
  drawn(1, "weight");
  EXPECT_TRUE(at::equal(before, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST(KeyedInit, GivesTheSameValuesWithOtherStridesAndTypes) {
  const at::Tensor plain = drawn(3, "w");
  at::Tensor transposed = at::empty({20, 50}).t();
  keyed_normal_(transposed, 3, "w", 1.0);
  EXPECT_TRUE(at::equal(plain, transposed));
  at::Tensor half = at::empty({50, 20}, at::kBFloat16);
  keyed_normal_(half, 3, "w", 1.0);
  EXPECT_TRUE(at::equal(plain.to(at::kBFloat16), half));
}

TEST(KeyedInit, FillsALeafThatNeedsAGradient) {
  at::Tensor leaf = at::empty({4}).requires_grad_();
  keyed_uniform_(leaf, 0, "w", 0.5);
  EXPECT_TRUE(leaf.is_leaf());
  EXPECT_LE(leaf.abs().max().item<float>(), 0.5F);
  EXPECT_GT(leaf.detach().std().item<float>(), 0.0F);
}

TEST(KeyedInit, KeepsMetaTensorsWithoutStorage) {
  at::Tensor meta = at::empty({4}, at::TensorOptions().device(at::kMeta));
  EXPECT_NO_THROW(keyed_normal_(meta, 0, "w", 1.0));
}

TEST(KeyedXavier, FillsUpToItsBound) {
  at::Tensor weight = at::empty({30, 10, 3, 3});
  keyed_xavier_uniform_(weight, 5, "conv.weight", 2.0);
  const double bound = 2.0 * std::sqrt(6.0 / (40 * 9));
  EXPECT_LE(weight.abs().max().item<double>(), bound * (1 + 1e-6));
  EXPECT_NEAR(weight.std().item<double>(), bound / std::sqrt(3.0), 0.02 * bound);
}

TEST(KeyedInit, RefusesWhatItCannotFill) {
  at::Tensor vector = at::empty({4});
  EXPECT_THROW(keyed_xavier_uniform_(vector, 0, "b"), base::ConfigError);
  EXPECT_THROW(keyed_uniform_(vector, 0, "b", -1.0), base::ConfigError);
  EXPECT_THROW(keyed_normal_(vector, 0, "b", std::numeric_limits<double>::quiet_NaN()),
               base::ConfigError);
  EXPECT_THROW(keyed_normal_(at::Tensor(), 0, "b", 1.0), base::ConfigError);
  EXPECT_THROW(keyed_normal_(at::zeros({4}, at::kLong), 0, "b", 1.0), base::ConfigError);
}

}  // namespace
}  // namespace headrace::model
