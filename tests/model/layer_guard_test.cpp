#include "headrace/model/layer_guard.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ThreadLocalState.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/modules/transformerlayer.h>

#include "headrace/base/error.h"
#include "headrace/model/keyed_generator.h"

namespace headrace::model {
namespace {

using Draw = std::function<at::Tensor()>;

at::Tensor global_state() {
  return at::detail::getDefaultCPUGenerator().get_state();
}

at::Tensor guarded(const LayerKey& key, const Draw& draw) {
  const LayerGuard guard(key, nullptr, StatisticsMode::kDiscard);
  return draw();
}

// Layers own their weights, made once; a call may only differ by what it draws.
struct Case {
  std::string name;
  Draw draw;
};

std::vector<Case> stock_layers() {
  namespace nn = torch::nn;
  const at::Tensor image = at::linspace(-1, 1, 4 * 16 * 3 * 3).reshape({4, 16, 3, 3});
  const at::Tensor sequence = at::linspace(-1, 1, 6 * 4 * 8).reshape({6, 4, 8});
  nn::Dropout dropout(0.4);
  nn::Dropout in_place(nn::DropoutOptions(0.4).inplace(true));
  nn::Dropout2d dropout2d(0.4);
  nn::Dropout3d dropout3d(0.4);
  nn::AlphaDropout alpha(nn::AlphaDropoutOptions(0.4));
  nn::FeatureAlphaDropout feature_alpha(nn::FeatureAlphaDropoutOptions(0.4));
  nn::RReLU rrelu;
  nn::LSTM lstm(nn::LSTMOptions(8, 8).num_layers(2).dropout(0.5));
  nn::GRU gru(nn::GRUOptions(8, 8).num_layers(2).dropout(0.5));
  nn::RNN tanh(nn::RNNOptions(8, 8).num_layers(2).dropout(0.5));
  nn::RNN relu(nn::RNNOptions(8, 8).num_layers(2).dropout(0.5).nonlinearity(torch::kReLU));
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(8, 2).dropout(0.5));
  nn::TransformerEncoderLayer encoder(nn::TransformerEncoderLayerOptions(8, 2).dropout(0.3));
  const at::Tensor lengths = at::tensor({6L, 5L, 3L, 1L});
  const auto packed = [=](const at::Tensor& data) {
    return at::_pack_padded_sequence(data, lengths, /*batch_first=*/false);
  };
  return {
      {"Dropout", [=]() mutable { return dropout(image); }},
      {"Dropout in place", [=]() mutable { return in_place(image.clone()); }},
      {"Dropout2d", [=]() mutable { return dropout2d(image); }},
      {"Dropout3d", [=]() mutable { return dropout3d(image.unsqueeze(2)); }},
      {"AlphaDropout", [=]() mutable { return alpha(image); }},
      {"FeatureAlphaDropout", [=]() mutable { return feature_alpha(image); }},
      {"RReLU", [=]() mutable { return rrelu(image); }},
      {"LSTM", [=]() mutable { return std::get<0>(lstm(sequence)); }},
      {"GRU", [=]() mutable { return std::get<0>(gru(sequence)); }},
      {"RNN tanh", [=]() mutable { return std::get<0>(tanh(sequence)); }},
      {"RNN relu", [=]() mutable { return std::get<0>(relu(sequence)); }},
      {"packed LSTM",
       [=]() mutable {
         const auto [data, batch_sizes] = packed(sequence);
         const at::Tensor zeros = at::zeros({2, 4, 8});
         return std::get<0>(at::lstm(data, batch_sizes, {zeros, zeros}, lstm->parameters(), true, 2,
                                     0.5, true, false));
       }},
      {"packed GRU",
       [=]() mutable {
         const auto [data, batch_sizes] = packed(sequence);
         return std::get<0>(at::gru(data, batch_sizes, at::zeros({2, 4, 8}), gru->parameters(),
                                    true, 2, 0.5, true, false));
       }},
      {"packed RNN",
       [=]() mutable {
         const auto [data, batch_sizes] = packed(sequence);
         return std::get<0>(at::rnn_tanh(data, batch_sizes, at::zeros({2, 4, 8}),
                                         tanh->parameters(), true, 2, 0.5, true, false)) +
                std::get<0>(at::rnn_relu(data, batch_sizes, at::zeros({2, 4, 8}),
                                         relu->parameters(), true, 2, 0.5, true, false));
       }},
      {"MultiheadAttention",
       [=]() mutable { return std::get<0>(attention(sequence, sequence, sequence)); }},
      {"TransformerEncoderLayer", [=]() mutable { return encoder(sequence); }},
      {"scaled dot product attention",
       [=]() mutable {
         const at::Tensor q = sequence.reshape({2, 2, 6, 8});
         return at::scaled_dot_product_attention(q, q, q, {}, 0.5);
       }},
      {"custom layer",
       [] {
         const at::Tensor noise = at::rand({8}) + at::randn({8}) + at::randint(100, {8});
         const at::Tensor coins =
             at::empty({8}).bernoulli_(0.5) + at::bernoulli(at::full({8}, 0.5));
         return noise + coins + at::multinomial(at::ones({8}), 8, true) + at::randperm(8);
       }},
  };
}

TEST(LayerGuard, DrawsTheSameForTheSameKeyOnAnyThreadInAnyOrder) {
  const auto cases = stock_layers();
  const at::Tensor before = global_state();
  const LayerKey key{11, 5, 2, layer_id("3")};
  std::vector<at::Tensor> first;
  for (const Case& layer : cases) {
    first.push_back(guarded(key, layer.draw));
  }
  std::vector<at::Tensor> second(cases.size());
  std::thread([&] {
    for (std::size_t i = cases.size(); i-- > 0;) {
      guarded({11, 5, i, 1}, cases[i].draw);
      second[i] = guarded(key, cases[i].draw);
    }
  }).join();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_TRUE(at::equal(first[i], second[i])) << cases[i].name;
  }
  EXPECT_TRUE(at::equal(before, global_state()));
}

TEST(LayerGuard, DrawsOtherNumbersForAnyOtherKey) {
  const LayerKey key{11, 5, 2, 3};
  const std::vector<LayerKey> others = {{12, 5, 2, 3}, {11, 6, 2, 3}, {11, 5, 3, 3},
                                        {11, 5, 2, 4}, {5, 11, 2, 3}, {11, 5, 3, 2}};
  for (const Case& layer : stock_layers()) {
    const at::Tensor drawn = guarded(key, layer.draw);
    for (const LayerKey& other : others) {
      EXPECT_FALSE(at::equal(drawn, guarded(other, layer.draw))) << layer.name;
    }
  }
}

TEST(LayerGuard, ManyThreadsAtOnceDrawWhatOneDraws) {
  const auto draw = [](std::uint64_t microbatch) {
    return guarded({1, 2, microbatch, 3}, [] { return at::dropout(at::ones({100}), 0.5, true); });
  };
  constexpr int kThreads = 8;
  constexpr int kCalls = 50;
  std::vector<std::vector<at::Tensor>> drawn(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&drawn, &draw, t] {
      for (int i = 0; i < kCalls; ++i) {
        drawn[t].push_back(draw(t * kCalls + i));
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (int i = 0; i < kThreads * kCalls; ++i) {
    EXPECT_TRUE(at::equal(drawn[i / kCalls][i % kCalls], draw(i)));
  }
}

TEST(LayerGuard, DrawsInSequenceWithinOneCall) {
  const at::Tensor two = guarded({}, [] { return at::stack({at::rand({8}), at::rand({8})}); });
  EXPECT_FALSE(at::equal(two[0], two[1]));
}

TEST(LayerGuard, LeavesAGeneratorThatTheLayerPassesAlone) {
  const Draw draw = [] { return at::rand({8}, keyed_generator(42)); };
  EXPECT_TRUE(at::equal(guarded({1, 1, 1, 1}, draw), draw()));
}

TEST(LayerGuard, DoesNotReachBeyondItsScope) {
  guarded({}, [] { return at::rand({1}); });
  const at::Tensor before = global_state();
  const at::Tensor first = at::rand({8});
  EXPECT_FALSE(at::equal(before, global_state()));
  EXPECT_FALSE(at::equal(first, at::rand({8})));
}

TEST(LayerGuard, EndsWithTheExceptionOfALayer) {
  const Draw throwing = []() -> at::Tensor { throw std::runtime_error("layer"); };
  EXPECT_THROW(guarded({}, throwing), std::runtime_error);
  const at::Tensor before = global_state();
  at::rand({1});
  EXPECT_FALSE(at::equal(before, global_state()));
  EXPECT_NO_THROW(guarded({}, [] { return at::rand({1}); }));
}

TEST(LayerGuard, GivesWayToAnInnerOneUntilThatEnds) {
  const auto draw = [] { return at::rand({8}); };
  const at::Tensor both = guarded({1, 1, 1, 1}, [&] {
    const at::Tensor first = draw();
    const at::Tensor inner = guarded({2, 2, 2, 2}, draw);
    return at::stack({first, draw(), inner});
  });
  const at::Tensor alone = guarded({1, 1, 1, 1}, [&] {
    return at::stack({at::rand({8}), at::rand({8})});
  });
  EXPECT_TRUE(at::equal(both.slice(0, 0, 2), alone));
  EXPECT_TRUE(at::equal(both[2], guarded({2, 2, 2, 2}, draw)));
}

TEST(LayerGuard, RefusesADrawOnAThreadThatTookTheStateOfTheLayerAlong) {
  std::string message = "nothing was thrown";
  guarded({}, [&message] {
    const at::ThreadLocalState state;
    std::thread([&message, &state] {
      const at::ThreadLocalStateGuard taken(state);
      try {
        at::rand({1});
      } catch (const base::ConfigError& error) {
        message = error.what();
      }
    }).join();
    return at::Tensor();
  });
  EXPECT_NE(message.find("aten::uniform_"), std::string::npos) << message;
  EXPECT_NE(message.find("thread"), std::string::npos) << message;
}

TEST(LayerGuard, DropsOutAtTheAskedRateAndScales) {
  const at::Tensor output = guarded({}, [] { return at::dropout(at::ones({20000}), 0.25, true); });
  EXPECT_NEAR(output.eq(0).to(at::kDouble).mean().item<double>(), 0.25, 0.02);
  EXPECT_FLOAT_EQ(output.max().item<float>(), 1 / 0.75F);
}

TEST(LayerGuard, GivesGradientsThatFitTheMask) {
  const at::Tensor input = at::ones({100}).requires_grad_();
  const at::Tensor output = guarded({}, [&] { return at::dropout(input, 0.5, true); });
  output.sum().backward();
  EXPECT_TRUE(at::equal(input.grad(), output.detach()));
}

TEST(LayerGuard, LetsMetaTensorsPass) {
  const at::Tensor meta = at::empty({4}, at::TensorOptions().device(at::kMeta));
  EXPECT_TRUE(guarded({}, [&] { return at::dropout(meta, 0.5, true); }).is_meta());
}

TEST(BuffersNotIntercepted, AreAllButTheCountersOfBatchNorm) {
  torch::nn::BatchNorm1d norm(2);
  std::vector<std::string> names;
  for (const auto& [name, buffer] : buffers_not_intercepted(*norm)) {
    names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"running_mean", "running_var"}));
}

TEST(BuffersNotIntercepted, ShowByTheirVersionWhenAForwardChangesThem) {
  torch::nn::BatchNorm2d batch(2);
  torch::nn::InstanceNorm2d instance(torch::nn::InstanceNorm2dOptions(2).track_running_stats(true));
  const auto moved = [](const std::shared_ptr<torch::nn::Module>& module, const auto& forward) {
    BatchNormStatistics statistics(module);
    statistics.begin(2);
    const auto buffers = buffers_not_intercepted(*module);
    std::int64_t before = 0;
    std::int64_t after = 0;
    for (const auto& [name, buffer] : buffers) {
      before += buffer._version();
    }
    {
      const LayerGuard guard({}, &statistics, StatisticsMode::kRecord);
      forward();
    }
    for (const auto& [name, buffer] : buffers) {
      after += buffer._version();
    }
    return after != before;
  };
  const at::Tensor input = at::randn({3, 2, 4, 4});
  EXPECT_FALSE(moved(batch.ptr(), [&] { batch(input); }));
  EXPECT_TRUE(moved(instance.ptr(), [&] { instance(input); }));
}

}  // namespace
}  // namespace headrace::model
