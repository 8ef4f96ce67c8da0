#include "tests/support/nets.h"

#include <stdexcept>

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

namespace headrace::test {
namespace nn = torch::nn;

Task mlp(std::int64_t rows, std::uint64_t seed) {
  torch::manual_seed(seed);
  Task task{nn::Sequential(nn::Linear(12, 32), nn::ReLU(nn::ReLUOptions(true)),
                           nn::LayerNorm(nn::LayerNormOptions({32})), nn::Dropout(0.3),
                           nn::Linear(32, 32), nn::ReLU(nn::ReLUOptions(true)), nn::Dropout(0.2),
                           nn::Linear(32, 24), nn::GELU(), nn::Linear(24, 5)),
            {},
            {}};
  task.input = at::randn({rows, 12});
  task.target = at::randint(5, {rows}, at::kLong);
  return task;
}

Task smooth(std::int64_t rows, double dropout, std::uint64_t seed) {
  torch::manual_seed(seed);
  Task task{nn::Sequential(nn::Linear(12, 24), nn::Tanh(), nn::Dropout(dropout),
                           nn::LayerNorm(nn::LayerNormOptions({24})), nn::Linear(24, 24),
                           nn::GELU(), nn::Dropout(dropout), nn::Linear(24, 5)),
            {},
            {}};
  task.input = at::randn({rows, 12});
  task.target = at::randint(5, {rows}, at::kLong);
  return task;
}

Task tokens(std::int64_t rows, std::int64_t length, std::uint64_t seed) {
  torch::manual_seed(seed);
  Task task{
      nn::Sequential(nn::Embedding(20, 16), nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, 20)),
      {},
      {}};
  task.input = at::randint(20, {rows, length}, at::kLong);
  task.target = at::randint(20, {rows, length}, at::kLong);
  return task;
}

Task pictures(std::int64_t rows, double dropout, std::uint64_t seed) {
  torch::manual_seed(seed);
  const auto conv = [](int in, int out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
  };
  Task task{nn::Sequential(conv(3, 6), nn::BatchNorm2d(6), nn::ReLU(), nn::Dropout(dropout),
                           conv(6, 8), nn::BatchNorm2d(8), nn::ReLU(), nn::AdaptiveAvgPool2d(1),
                           nn::Flatten(), nn::Linear(8, 4)),
            {},
            {}};
  task.input = at::randn({rows, 3, 6, 6});
  task.target = at::randint(4, {rows}, at::kLong);
  return task;
}

Task text(std::int64_t rows, std::uint64_t seed) {
  torch::manual_seed(seed);
  Task task{nn::Sequential(
                nn::Embedding(20, 16),
                nn::LSTM(nn::LSTMOptions(16, 16).batch_first(true).num_layers(2).dropout(0.25)),
                nn::LayerNorm(nn::LayerNormOptions({16})), nn::Dropout(0.4), nn::Linear(16, 32),
                nn::GELU(), nn::Linear(32, 16), nn::Linear(16, 20)),
            {},
            {}};
  task.input = at::randint(20, {rows, 7}, at::kLong);
  task.target = at::randint(20, {rows, 7}, at::kLong);
  return task;
}

Task images(std::int64_t rows, bool channels_last, std::uint64_t seed) {
  torch::manual_seed(seed);
  const auto conv = [](int in, int out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
  };
  Task task{nn::Sequential(conv(3, 8), nn::BatchNorm2d(8), nn::ReLU(nn::ReLUOptions(true)),
                           nn::Dropout2d(0.1), conv(8, 12), nn::BatchNorm2d(12),
                           nn::ReLU(nn::ReLUOptions(true)), nn::MaxPool2d(2), conv(12, 12),
                           nn::BatchNorm2d(nn::BatchNorm2dOptions(12).momentum(std::nullopt)),
                           nn::ELU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(12, 4)),
            {},
            {}};
  task.input = at::randn({rows, 3, 8, 8});
  if (channels_last) task.input = task.input.contiguous(at::MemoryFormat::ChannelsLast);
  task.target = at::randint(4, {rows}, at::kLong);
  return task;
}

Task transposed(std::int64_t rows, std::uint64_t seed) {
  torch::manual_seed(seed);
  Task task{nn::Sequential(nn::Linear(33, 47), nn::Tanh(), nn::Linear(47, 19), nn::Linear(19, 6)),
            {},
            {}};
  task.input = at::randn({33, rows}).t();
  task.target = at::randint(6, {rows}, at::kLong);
  return task;
}

Task task(const std::string& name, std::int64_t rows) {
  if (name == "mlp") return mlp(rows);
  if (name == "text") return text(rows);
  if (name == "images") return images(rows);
  if (name == "images_channels_last") return images(rows, true);
  if (name == "transposed") return transposed(rows);
  throw std::invalid_argument("no task " + name);
}

Named parameters_of(const nn::Sequential& net) {
  Named named;
  for (const auto& item : net->named_parameters()) named.emplace_back(item.key(), item.value());
  return named;
}

Named buffers_of(const nn::Sequential& net) {
  Named named;
  for (const auto& item : net->named_buffers()) named.emplace_back(item.key(), item.value());
  return named;
}

}  // namespace headrace::test
