#include "headrace/model/sequence.h"

#include <stdexcept>
#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformerlayer.h>

#include "headrace/base/error.h"
#include "headrace/model/layer.h"

#include "tests/support/messages.h"

namespace headrace::model {
namespace {

using test::expect_says;
using test::message_of;

namespace nn = torch::nn;

// Adds and hands on: (a, b) -> (a + b, b).
struct Add : Layer {
  Tensors forward(Tensors inputs) override { return {inputs.at(0) + inputs.at(1), inputs.at(1)}; }
};

struct Returns : Layer {
  explicit Returns(Tensors given) : outputs(std::move(given)) {}
  Tensors forward(Tensors) override { return outputs; }
  Tensors outputs;
};

struct Halves : nn::Module {
  Tensors forward(const at::Tensor& x) { return x.chunk(2, -1); }
};

struct Counts : nn::Module {
  int forward(const at::Tensor& x) { return static_cast<int>(x.numel()); }
};

struct Throws : nn::Module {
  at::Tensor forward(const at::Tensor&) { throw std::out_of_range("my own error"); }
};

struct Fails : nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x.view({-1, 1000}); }
};

// How a Sequential is put into a Sequential.
struct Wrapped : nn::Module {
  Wrapped() : inner(register_module("inner", nn::Sequential(nn::Linear(4, 3), nn::ReLU()))) {}
  at::Tensor forward(const at::Tensor& x) { return inner->forward(x); }
  nn::Sequential inner;
};

template <typename... Modules>
NamedLayer only(Modules&&... modules) {
  return layers_of(nn::Sequential(std::forward<Modules>(modules)...)).front();
}

TEST(LayersOf, GivesModulesAndNamesAsTheyStand) {
  nn::Sequential net;
  nn::Linear shared(2, 2);
  net->push_back("first", shared);
  net->push_back(nn::ReLU());
  net->push_back("again", shared);
  const auto layers = layers_of(net);
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].name, "first");
  EXPECT_EQ(layers[1].name, "1");
  EXPECT_EQ(layers[2].name, "again");
  EXPECT_EQ(layers[0].module, shared.ptr());
  EXPECT_EQ(layers[2].module, shared.ptr());
}

TEST(LayersOf, ChainedEqualsTheSequential) {
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 2));
  const at::Tensor input = at::randn({3, 4});
  Tensors values = {input};
  for (const auto& layer : layers_of(net)) {
    values = layer.call(std::move(values));
  }
  ASSERT_EQ(values.size(), 1U);
  EXPECT_TRUE(at::equal(values[0], net->forward(input)));
}

TEST(LayersOf, KeepsModulesAliveWithoutTheNet) {
  std::vector<NamedLayer> layers;
  {
    nn::Sequential net(nn::Linear(4, 2));
    layers = layers_of(net);
  }
  EXPECT_EQ(layers[0].call({at::ones({1, 4})})[0].size(1), 2);
}

TEST(LayersOf, CallsLayersWithListsOfTensors) {
  const auto layer = only(Add());
  const at::Tensor b = at::ones({2});
  const Tensors outputs = layer.call({at::ones({2}), b});
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_TRUE(at::equal(outputs[0], at::full({2}, 2.0)));
  EXPECT_TRUE(outputs[1].is_same(b));
}

TEST(LayersOf, GivesAStockModuleAsManyTensorsAsItTakes) {
  const at::Tensor x = at::randn({5, 2, 4});
  nn::Bilinear bilinear(4, 4, 3);
  EXPECT_TRUE(at::equal(only(bilinear).call({x, x})[0], bilinear(x, x)));
  nn::MultiheadAttention attention(4, 2);
  const auto layer = only(attention);
  EXPECT_TRUE(at::equal(layer.call({x, x, x})[0], std::get<0>(attention(x, x, x))));
  const at::Tensor padding = at::zeros({2, 5}, at::kBool);
  EXPECT_EQ(layer.call({x, x, x, padding}).size(), 1U);
  nn::TransformerEncoderLayer encoder(nn::TransformerEncoderLayerOptions(4, 2).dropout(0.0));
  EXPECT_TRUE(at::equal(only(encoder).call({x})[0], encoder(x)));
}

TEST(LayersOf, HandsOnTheFirstTensorOfATuple) {
  const at::Tensor x = at::randn({5, 2, 4});
  nn::LSTM lstm(4, 3);
  nn::GRU gru(4, 3);
  nn::RNN rnn(4, 3);
  nn::LSTMCell lstm_cell(4, 3);
  nn::GRUCell gru_cell(4, 3);
  EXPECT_TRUE(at::equal(only(lstm).call({x})[0], std::get<0>(lstm(x))));
  EXPECT_TRUE(at::equal(only(gru).call({x})[0], std::get<0>(gru(x))));
  EXPECT_TRUE(at::equal(only(rnn).call({x})[0], std::get<0>(rnn(x))));
  EXPECT_TRUE(at::equal(only(lstm_cell).call({x[0]})[0], std::get<0>(lstm_cell(x[0]))));
  const at::Tensor state = at::randn({2, 3});
  EXPECT_TRUE(at::equal(only(gru_cell).call({x[0], state})[0], gru_cell(x[0], state)));
  EXPECT_EQ(only(lstm).call({x}).size(), 1U);
}

TEST(LayersOf, TakesAListThatAModuleReturns) {
  EXPECT_EQ(only(Halves()).call({at::ones({2, 4})}).size(), 2U);
}

TEST(LayersOf, TakesAWrappedSequentialAsOneLayer) {
  const auto layer = only(Wrapped());
  EXPECT_EQ(layer.call({at::ones({2, 4})})[0].size(1), 3);
  EXPECT_EQ(layer.module->named_parameters().keys().front(), "inner.0.weight");
}

TEST(LayersOf, RefusesANumberOfInputsThatALayerDoesNotTake) {
  const at::Tensor x = at::ones({2, 4});
  const auto linear = only(nn::Linear(4, 2));
  expect_says(message_of([&] {
                linear.call({x, x});
              }),
              {"layer '0'", "Linear", "given 2 tensors", "expects 1"});
  expect_says(message_of([&] { linear.call({}); }), {"layer '0'", "given 0 tensors"});
  expect_says(message_of([&] { linear.call({x, x, x, x, x}); }), {"given 5 tensors", "1 to 4"});
  expect_says(message_of([&] { only(nn::Bilinear(4, 4, 2)).call({x}); }),
              {"Bilinear", "given 1 tensor ", "expects 2"});
  expect_says(message_of([&] {
                only(nn::LSTM(4, 2)).call({x, x});
              }),
              {"LSTM", "given 2 tensors", "argument #1"});
}

TEST(LayersOf, RefusesResultsThatAreNoTensors) {
  const at::Tensor x = at::ones({2, 4});
  expect_says(message_of([&] { only(Counts()).call({x}); }),
              {"layer '0'", "Counts", "value of type int"});
  expect_says(message_of([&] { only(Returns(Tensors())).call({x}); }),
              {"layer '0'", "Returns", "empty list"});
  expect_says(message_of([&] {
                only(Returns({x, at::Tensor()})).call({x});
              }),
              {"undefined tensor at place 1 of 2"});
}

TEST(LayersOf, LetsErrorsOfALayerThroughAsTheyAre) {
  const at::Tensor x = at::ones({2, 4});
  EXPECT_THROW(only(Throws()).call({x}), std::out_of_range);
  EXPECT_THROW(only(Fails()).call({x}), c10::Error);
}

TEST(LayersOf, RefusesAnEmptyNet) {
  EXPECT_THROW(layers_of(nn::Sequential()), base::ConfigError);
  EXPECT_THROW(layers_of(nn::Sequential(nullptr)), base::ConfigError);
}

LayerSpec linear_spec(const std::string& name) {
  return {name, [] { return nn::AnyModule(nn::Linear(4, 4)); }};
}

TEST(BuildLayers, BuildsEachByItsFactory) {
  int built = 0;
  const LayerSpec counted = {"in", [&built] {
                               ++built;
                               return nn::AnyModule(nn::Linear(4, 4));
                             }};
  const auto layers = build_layers({counted, linear_spec("out")});
  EXPECT_EQ(built, 1);
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[1].name, "out");
  EXPECT_EQ(layers[0].call({at::ones({1, 4})}).size(), 1U);
  EXPECT_EQ(built, 1);
}

TEST(BuildLayers, RefusesSpecsThatCannotBeBuilt) {
  expect_says(message_of([] { build_layers({}); }), {"no layers"});
  expect_says(message_of([] {
                build_layers({linear_spec("a"), linear_spec("a")});
              }),
              {"LayerSpec 1", "'a'", "earlier layer"});
  expect_says(message_of([] { build_layers({linear_spec("")}); }), {"no name"});
  expect_says(message_of([] { build_layers({{"a", nullptr}}); }), {"'a'", "no factory"});
  expect_says(message_of([] {
                build_layers({{"a", [] { return nn::AnyModule(); }}});
              }),
              {"'a'", "empty module"});
}

}  // namespace
}  // namespace headrace::model
