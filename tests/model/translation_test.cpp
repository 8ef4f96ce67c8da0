#include "headrace/model/translation.h"

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "headrace/base/error.h"
#include "headrace/model/layer.h"

#include "tests/model/small_transformer.h"

namespace headrace::model {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kBegin = 1;

/// Greedy decoding as its definition has it: a full forward for every token.
std::vector<Ids> recomputed(const std::vector<NamedLayer>& layers, const at::Tensor& source,
                            const GreedyOptions& options) {
  const at::NoGradGuard no_grad;
  for (const NamedLayer& layer : layers) layer.module->eval();
  std::vector<Ids> results;
  for (std::int64_t row = 0; row < source.size(0); ++row) {
    at::Tensor target = at::full({1, 1}, options.begin, at::kLong);
    Ids ids;
    for (std::int64_t i = 0; i < options.max_length; ++i) {
      const at::Tensor next =
          logits(layers, source.narrow(0, row, 1), target).select(1, i).argmax(-1);
      if (next.item<std::int64_t>() == options.end) break;
      ids.push_back(next.item<std::int64_t>());
      target = at::cat({target, next.view({1, 1})}, 1);
    }
    results.push_back(ids);
  }
  for (const NamedLayer& layer : layers) layer.module->train();
  return results;
}

/// Sources of different lengths, padded.
at::Tensor sources() {
  at::Tensor source = some_ids(8, 7, 19);
  for (std::int64_t row = 0; row < 8; ++row) {
    source.select(0, row).narrow(0, 7 - row / 2, row / 2).fill_(kTestPadding);
  }
  return source;
}

std::vector<NamedLayer> small_net() {
  TransformerOptions options = small_options();
  options.dropout = 0.2;  // must not act
  std::vector<NamedLayer> layers = build_layers(translation_transformer(options, 4));
  // Large weights, so that the likeliest ids differ from row to row and place to place.
  const at::NoGradGuard no_grad;
  for (const NamedLayer& layer : layers) {
    for (at::Tensor& weight : layer.module->parameters()) weight.mul_(2.5);
  }
  return layers;
}

TEST(GreedyDecode, EqualsTheArgmaxOfFullForwards) {
  at::set_num_threads(1);  // thousands of tiny operations
  const std::vector<NamedLayer> layers = small_net();
  GreedyOptions options{kBegin, -1, 12};
  std::size_t shortened = 0;
  for (const std::int64_t end : {0, 4, 8, 12, 16}) {
    options.end = end;
    const std::vector<Ids> expected = recomputed(layers, sources(), options);
    EXPECT_EQ(greedy_decode(layers, sources(), options), expected) << "end " << options.end;
    for (const Ids& ids : expected) shortened += ids.size() < 12 ? 1 : 0;
  }
  EXPECT_GT(shortened, 0U);  // some rows did end early
}

TEST(GreedyDecode, GivesAtMostMaxLengthTokens) {
  const std::vector<NamedLayer> layers = small_net();
  const GreedyOptions options{kBegin, 18, 3};
  for (const Ids& ids : greedy_decode(layers, sources(), options)) EXPECT_LE(ids.size(), 3U);
}

TEST(GreedyDecode, OfNoRowsIsNothing) {
  EXPECT_TRUE(greedy_decode(small_net(), at::empty({0, 4}, at::kLong), {kBegin, 2, 5}).empty());
}

TEST(GreedyDecode, LeavesModesAndGradientsAsTheyWere) {
  const std::vector<NamedLayer> layers = small_net();
  layers[1].module->eval();
  greedy_decode(layers, sources(), {kBegin, 2, 5});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const auto& module : layers[i].module->modules()) {
      EXPECT_EQ(module->is_training(), i != 1) << layers[i].name;
    }
    for (const at::Tensor& weight : layers[i].module->parameters()) {
      EXPECT_TRUE(weight.requires_grad());
      EXPECT_FALSE(weight.grad().defined());
    }
  }
  EXPECT_TRUE(at::GradMode::is_enabled());

  // Also when it fails half-way: an id that the source embedding does not have.
  EXPECT_ANY_THROW(greedy_decode(layers, at::full({1, 2}, 99, at::kLong), {kBegin, 2, 5}));
  EXPECT_TRUE(layers[0].module->is_training());
  EXPECT_FALSE(layers[1].module->is_training());
}

TEST(GreedyDecode, RefusesWhatCannotWorkBeforeItStarts) {
  const std::vector<NamedLayer> layers = small_net();
  EXPECT_THROW(greedy_decode(layers, sources(), {}), base::ConfigError);
  EXPECT_THROW(greedy_decode(layers, sources(), {kBegin, 2, 0}), base::ConfigError);
  EXPECT_THROW(greedy_decode(layers, sources(), {kBegin, 2, 13}), base::ConfigError);
  EXPECT_THROW(greedy_decode({}, sources(), {kBegin, 2, 5}), base::ConfigError);
  const std::vector<NamedLayer> headless(layers.begin(), layers.end() - 1);
  try {
    greedy_decode(headless, sources(), {kBegin, 2, 5});
    FAIL() << "accepted";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("head 0"), std::string::npos) << error.what();
  }
  const std::vector<NamedLayer> reversed(layers.rbegin(), layers.rend());
  EXPECT_THROW(greedy_decode(reversed, sources(), {kBegin, 2, 5}), base::ConfigError);
}

}  // namespace
}  // namespace headrace::model
