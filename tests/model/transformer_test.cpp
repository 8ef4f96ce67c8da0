#include "headrace/model/transformer.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>

#include "headrace/base/error.h"
#include "headrace/model/layer_guard.h"
#include "headrace/model/sequence.h"

#include "tests/model/small_transformer.h"

namespace headrace::model {
namespace {

using Weights = std::map<std::string, at::Tensor>;

Weights weights_of(const std::vector<NamedLayer>& layers) {
  Weights weights;
  for (const NamedLayer& layer : layers) {
    for (const auto& item : layer.module->named_parameters()) {
      weights.emplace(layer.name + "." + item.key(), item.value());
    }
  }
  return weights;
}

std::int64_t count(const std::vector<NamedLayer>& layers) {
  std::set<at::TensorImpl*> seen;
  std::int64_t total = 0;
  for (const auto& [name, weight] : weights_of(layers)) {
    if (seen.insert(weight.unsafeGetTensorImpl()).second) total += weight.numel();
  }
  return total;
}

std::vector<NamedLayer> build(const TransformerOptions& options, std::uint64_t seed = 1) {
  return build_layers(translation_transformer(options, seed));
}

std::string refusal(const TransformerOptions& options) {
  try {
    translation_transformer(options, 1);
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Transformer, IsOneSequenceThatCarriesBothStates) {
  const std::vector<NamedLayer> layers = build(small_options());
  std::vector<std::string> names;
  Tensors values = {some_ids(3, 7, 20), some_ids(3, 5, 19)};
  at::Tensor bias;
  for (const NamedLayer& layer : layers) {
    names.push_back(layer.name);
    const Tensors before = values;
    values = layer.call(values);
    if (layer.name == "embed") bias = values[2];
    if (layer.name == "head") continue;
    ASSERT_EQ(values.size(), 3U);
    EXPECT_EQ(values[0].sizes(), (std::vector<std::int64_t>{3, 7, 16}));
    EXPECT_EQ(values[1].sizes(), (std::vector<std::int64_t>{3, 5, 16}));
    EXPECT_TRUE(values[2].is_same(bias));
    // What a layer does not change it hands on as it came.
    EXPECT_EQ(values[0].is_same(before[0]), layer.name.starts_with("decoder"));
    EXPECT_EQ(values[1].is_same(before[1]), layer.name.starts_with("encoder"));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"embed", "encoder_0", "encoder_1", "decoder_0",
                                             "decoder_1", "decoder_2", "head"}));
  EXPECT_EQ(values[0].sizes(), (std::vector<std::int64_t>{3, 5, 19}));
}

TEST(Transformer, PaddingOfTheSourceChangesNothing) {
  const std::vector<NamedLayer> layers = build(small_options());
  const at::Tensor source = some_ids(2, 6, 19);
  const at::Tensor target = some_ids(2, 5, 19);
  const at::Tensor padded = at::constant_pad_nd(source, {0, 5}, kTestPadding);
  EXPECT_TRUE(
      at::allclose(logits(layers, padded, target), logits(layers, source, target), 1e-6, 1e-6));
  // The same tail as real tokens does change it.
  const at::Tensor longer = at::constant_pad_nd(source, {0, 5}, 4);
  EXPECT_FALSE(
      at::allclose(logits(layers, longer, target), logits(layers, source, target), 1e-3, 1e-3));
}

TEST(Transformer, ASourceOfNothingButPaddingGivesFiniteNumbers) {
  const std::vector<NamedLayer> layers = build(small_options());
  const at::Tensor source = at::full({2, 6}, kTestPadding, at::kLong);
  EXPECT_TRUE(at::isfinite(logits(layers, source, some_ids(2, 5, 19))).all().item<bool>());
}

TEST(Transformer, NoPositionSeesTheTargetAfterIt) {
  const std::vector<NamedLayer> layers = build(small_options());
  const at::Tensor source = some_ids(2, 6, 19);
  const at::Tensor target = some_ids(2, 8, 19);
  const at::Tensor before = logits(layers, source, target);
  for (std::int64_t changed = 0; changed < 8; ++changed) {
    at::Tensor other = target.clone();
    other.select(1, changed).add_(1).remainder_(19);
    const at::Tensor after = logits(layers, source, other);
    EXPECT_TRUE(at::equal(after.narrow(1, 0, changed), before.narrow(1, 0, changed))) << changed;
    EXPECT_FALSE(at::allclose(after.select(1, changed), before.select(1, changed))) << changed;
  }
}

TEST(Transformer, HasAsManyParametersAsTheFormulaSays) {
  TransformerOptions options = small_options();
  EXPECT_EQ(count(build(options)), count_parameters(options));
  options.tied_embedding = true;
  EXPECT_EQ(count(build(options)), count_parameters(options));
  options.source_vocabulary = options.target_vocabulary;
  EXPECT_EQ(count(build(options)), count_parameters(options));

  // GPipe's Transformer-L (table 1) adds 50.35 M parameters a layer; ours are its encoder layers.
  options.width = 2048;
  options.feed_forward = 8192;
  options.heads = 32;
  const std::int64_t before = count_parameters(options);
  options.encoder_layers += 1;
  EXPECT_NEAR(static_cast<double>(count_parameters(options) - before), 50.35e6, 0.01e6);
}

TEST(Transformer, InitialWeightsDependOnSeedAndNameNotOnTheOrderOfBuilding) {
  const TransformerOptions options = small_options();
  const std::vector<LayerSpec> specs = translation_transformer(options, 1);
  const Weights one = weights_of(build_layers(specs));
  const Weights two = weights_of(build_layers({specs.rbegin(), specs.rend()}));
  const Weights other = weights_of(build(options, 2));
  ASSERT_EQ(one.size(), two.size());
  std::set<std::vector<float>> values;
  for (const auto& [name, weight] : one) {
    EXPECT_TRUE(at::equal(weight, two.at(name))) << name;
    if (weight.std().item<double>() == 0) continue;  // biases and norms
    EXPECT_FALSE(at::equal(weight, other.at(name))) << name;
    const at::Tensor head = weight.detach().flatten().narrow(0, 0, 8);
    const auto* data = head.const_data_ptr<float>();
    EXPECT_TRUE(values.insert({data, data + 8}).second) << name << " repeats another weight";
  }
}

TEST(Transformer, BuildingDoesNotMoveTheGlobalGenerator) {
  at::manual_seed(3);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(3);
  build(small_options());
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

TEST(Transformer, FeedForwardWeightsStartDividedByTheDepth) {
  TransformerOptions shallow = small_options();
  shallow.encoder_layers = shallow.decoder_layers = 1;
  const Weights two = weights_of(build(shallow));
  const Weights five = weights_of(build(small_options()));
  for (const char* name :
       {"encoder_0.feed_forward.in.weight", "encoder_0.feed_forward.out.weight",
        "decoder_0.feed_forward.in.weight", "decoder_0.feed_forward.out.weight"}) {
    EXPECT_TRUE(at::allclose(five.at(name) * 2.5, two.at(name), 1e-5, 1e-7)) << name;
  }
  EXPECT_TRUE(at::equal(five.at("encoder_0.attention.qkv.weight"),
                        two.at("encoder_0.attention.qkv.weight")));
  // Xavier for each of the three matrices inside, not for the long one.
  const double bound = std::sqrt(6.0 / 32);
  const double most = two.at("encoder_0.attention.qkv.weight").abs().max().item<double>();
  EXPECT_LE(most, bound);
  EXPECT_GT(most, 0.98 * bound);
}

TEST(Transformer, GradientsReachEveryParameter) {
  for (const bool tied : {false, true}) {
    TransformerOptions options = small_options();
    options.tied_embedding = tied;
    const std::vector<NamedLayer> layers = build(options);
    // Every id is used, so that every row of the embeddings counts.
    const at::Tensor out = logits(layers, some_ids(6, 8, 23), some_ids(6, 8, 19));
    out.square().sum().backward();
    for (const auto& [name, weight] : weights_of(layers)) {
      ASSERT_TRUE(weight.grad().defined()) << name;
      EXPECT_TRUE(at::isfinite(weight.grad()).all().item<bool>()) << name;
      EXPECT_GT(weight.grad().abs().sum().item<double>(), 0) << name;
    }
  }
}

TEST(Transformer, TiedWeightsAreOneTensorPerBuild) {
  TransformerOptions options = small_options();
  options.tied_embedding = true;
  const std::vector<LayerSpec> specs = translation_transformer(options, 1);
  const Weights first = weights_of(build_layers(specs));
  const Weights second = weights_of(build_layers({specs.rbegin(), specs.rend()}));
  EXPECT_TRUE(first.at("embed.target").is_same(first.at("head.weight")));
  EXPECT_TRUE(second.at("embed.target").is_same(second.at("head.weight")));
  EXPECT_FALSE(first.at("head.weight").is_same(second.at("head.weight")));
  EXPECT_TRUE(at::equal(first.at("head.weight"), second.at("head.weight")));

  options.source_vocabulary = options.target_vocabulary;
  options.padding = -1;
  const Weights shared = weights_of(build(options));
  EXPECT_TRUE(shared.at("embed.weight").is_same(shared.at("head.weight")));
  EXPECT_FALSE(shared.contains("embed.source"));
}

TEST(Transformer, ALayerBuiltAloneAndDroppedLeavesItsWeightToNobody) {
  TransformerOptions options = small_options();
  options.tied_embedding = true;
  const std::vector<LayerSpec> specs = translation_transformer(options, 1);
  {
    const std::vector<NamedLayer> alone = build_layers({specs.front()});
    const at::NoGradGuard no_grad;
    weights_of(alone).at("embed.target").zero_();
  }
  const Weights whole = weights_of(build_layers({specs.rbegin(), specs.rend()}));
  EXPECT_TRUE(whole.at("embed.target").is_same(whole.at("head.weight")));
  EXPECT_GT(whole.at("head.weight").abs().sum().item<double>(), 0);
}

TEST(Transformer, DropoutActsInTrainingOnlyAndIsKeyed) {
  TransformerOptions options = small_options();
  options.dropout = 0.3;
  const std::vector<NamedLayer> layers = build(options);
  const at::Tensor source = some_ids(2, 6, 19);
  const at::Tensor target = some_ids(2, 5, 19);
  const auto keyed = [&](std::uint64_t step) {
    const LayerGuard guard({1, step, 0, 0}, nullptr, StatisticsMode::kDiscard);
    return logits(layers, source, target);
  };
  EXPECT_TRUE(at::equal(keyed(1), keyed(1)));
  EXPECT_FALSE(at::allclose(keyed(1), keyed(2)));
  for (const NamedLayer& layer : layers) layer.module->eval();
  EXPECT_TRUE(at::equal(keyed(1), keyed(2)));
}

TEST(Transformer, RefusesSizesThatDoNotFitWithTheNumbers) {
  const auto with = [](auto set) {
    TransformerOptions options = small_options();
    set(options);
    return refusal(options);
  };
  EXPECT_EQ(with([](auto&) {}), "");
  EXPECT_NE(with([](auto& o) { o.width = 130, o.heads = 4; }).find("4 x 32 = 128"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.heads = 0; }).find("heads"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.encoder_layers = 0; }).find("encoder_layers"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.decoder_layers = -1; }).find("found -1"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.source_vocabulary = 0; }).find("source_vocabulary"),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.dropout = 1.0; }).find("dropout"), std::string::npos);
  EXPECT_NE(
      with([](auto& o) { o.dropout = std::numeric_limits<double>::quiet_NaN(); }).find("dropout"),
      std::string::npos);
  EXPECT_NE(with([](auto& o) {
              o.width = 1 << 24;
              o.feed_forward = 1 << 24;
              o.encoder_layers = 1 << 24;
            }).find("1e13"),
            std::string::npos);
}

TEST(Transformer, ASequenceThatIsTooLongIsRefusedWithItsLength) {
  const std::vector<NamedLayer> layers = build(small_options());
  try {
    logits(layers, some_ids(1, 13, 19), some_ids(1, 5, 19));
    FAIL() << "accepted";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("13 tokens is longer than max_length 12"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace headrace::model
