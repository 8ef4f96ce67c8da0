#include "headrace/model/batch_norm_statistics.h"

#include <functional>
#include <stdexcept>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "headrace/model/layer_guard.h"

namespace headrace::model {
namespace {

namespace nn = torch::nn;

// Convolution and BatchNorm as one layer; `calls` > 1 shares the BatchNorm within a forward.
struct ConvNormImpl : nn::Module {
  explicit ConvNormImpl(nn::BatchNorm2dOptions options, int num_calls = 1)
      : conv(register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1)))),
        norm(register_module("norm", nn::BatchNorm2d(options))),
        calls(num_calls) {}

  at::Tensor forward(at::Tensor x) {
    x = conv(x);
    for (int i = 0; i < calls; ++i) {
      x = norm(x) + i;
    }
    return x;
  }

  nn::Conv2d conv;
  nn::BatchNorm2d norm;
  int calls;
};
TORCH_MODULE(ConvNorm);

void copy_state(nn::Module& to, const nn::Module& from) {
  const at::NoGradGuard no_grad;
  for (const auto& item : from.named_parameters()) {
    to.named_parameters()[item.key()].copy_(item.value());
  }
  for (const auto& item : from.named_buffers()) {
    to.named_buffers()[item.key()].copy_(item.value());
  }
}

ConvNorm twin_of(ConvNorm& net, nn::BatchNorm2dOptions options) {
  ConvNorm twin(options, net->calls);
  copy_state(*twin, *net);
  return twin;
}

void expect_same_statistics(const nn::Module& a, const nn::Module& b) {
  for (const auto& item : a.named_buffers()) {
    EXPECT_TRUE(at::equal(item.value(), b.named_buffers()[item.key()])) << item.key();
  }
}

template <typename Net>
at::Tensor record(Net& net, BatchNormStatistics& statistics, std::uint64_t microbatch,
                  const at::Tensor& input, StatisticsMode mode = StatisticsMode::kRecord) {
  const LayerGuard guard({1, 1, microbatch, 1}, &statistics, mode);
  return net(input);
}

TEST(BatchNormStatistics, LeavesOutputAndGradientsToTheBit) {
  const nn::BatchNorm2dOptions options(4);
  for (const int num_microbatches : {1, 2}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      ConvNorm stock(options);
      ConvNorm net = twin_of(stock, options);
      BatchNormStatistics statistics(net.ptr());
      statistics.begin(num_microbatches);
      const at::Tensor image = at::randn({5, 3, 8, 8}).contiguous(format);
      const at::Tensor x = image.clone().requires_grad_();
      const at::Tensor y = image.clone().requires_grad_();
      const at::Tensor expected = stock(x);
      const at::Tensor output = record(net, statistics, 0, y);
      EXPECT_TRUE(at::equal(expected, output));
      // A commit between forward and backward must not disturb the graph.
      statistics.commit();
      const at::Tensor weights = at::randn_like(expected);
      (expected * weights).sum().backward();
      (output * weights).sum().backward();
      EXPECT_TRUE(at::equal(x.grad(), y.grad()));
      for (const auto& item : stock->named_parameters()) {
        EXPECT_TRUE(at::equal(item.value().grad(), net->named_parameters()[item.key()].grad()))
            << item.key();
      }
    }
  }
}

TEST(BatchNormStatistics, WithOneMicrobatchAreTheStockModulesToTheBit) {
  for (const std::optional<double> momentum : {std::optional(0.1), std::optional<double>()}) {
    for (const int calls : {1, 2}) {
      const auto options = nn::BatchNorm2dOptions(4).momentum(momentum);
      ConvNorm stock(options, calls);
      ConvNorm net = twin_of(stock, options);
      BatchNormStatistics statistics(net.ptr());
      for (int step = 0; step < 3; ++step) {
        const at::Tensor input = at::randn({5, 3, 8, 8}) + step;
        stock(input);
        statistics.begin(1);
        record(net, statistics, 0, input);
        statistics.commit();
        expect_same_statistics(*stock, *net);
      }
    }
  }
}

TEST(BatchNormStatistics, OfUnevenMicrobatchesAreThoseOfTheMiniBatch) {
  nn::BatchNorm1d norm(3);
  const at::Tensor batch = at::randn({9, 3, 5}) * 3 + 100;
  BatchNormStatistics statistics(norm.ptr());
  statistics.begin(3);
  std::uint64_t microbatch = 0;
  for (const auto& part : batch.split_with_sizes({4, 4, 1})) {
    record(norm, statistics, microbatch++, part);
  }
  statistics.commit();
  const at::Tensor rows = batch.to(at::kDouble).transpose(1, 2).reshape({45, 3});
  EXPECT_TRUE(at::allclose(norm->running_mean.to(at::kDouble), rows.mean(0) * 0.1, 1e-6, 0));
  EXPECT_TRUE(at::allclose(norm->running_var.to(at::kDouble), rows.var(0) * 0.1 + 0.9, 1e-5, 0));
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
}

TEST(BatchNormStatistics, AreExactPerMicrobatchAndMergedInDoublePrecision) {
  nn::BatchNorm1d norm(3);
  BatchNormStatistics statistics(norm.ptr());
  statistics.begin(2);
  const std::vector<at::Tensor> parts = {at::randn({8, 3}), at::randn({4, 3}) + 2};
  std::vector<at::Tensor> means;
  std::vector<at::Tensor> vars;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    nn::BatchNorm1d alone(nn::BatchNorm1dOptions(3).momentum(1.0));
    alone->running_var.zero_();
    alone(parts[i]);
    means.push_back(alone->running_mean.to(at::kDouble));
    vars.push_back(alone->running_var.to(at::kDouble));
    record(norm, statistics, i, parts[i]);
  }
  statistics.commit();
  const at::Tensor mean = means[0] * (8.0 / 12) + means[1] * (4.0 / 12);
  const at::Tensor var = (vars[0] * 7 + (means[0] - mean).square() * 8 + vars[1] * 3 +
                          (means[1] - mean).square() * 4) /
                         11;
  EXPECT_TRUE(at::equal(norm->running_mean, (mean * 0.1).to(at::kFloat)));
  const at::Tensor ones = at::ones({3}, at::kDouble);
  EXPECT_TRUE(at::equal(norm->running_var, (ones * (1 - 0.1) + var * 0.1).to(at::kFloat)));
}

TEST(BatchNormStatistics, DoNotDependOnTheOrderInWhichMicrobatchesRun) {
  const at::Tensor batch = at::randn({7, 3, 2});
  const auto parts = batch.split_with_sizes({3, 2, 2});
  const auto run = [&parts](const std::vector<std::uint64_t>& order) {
    nn::BatchNorm1d norm(3);
    BatchNormStatistics statistics(norm.ptr());
    statistics.begin(3);
    for (const auto microbatch : order) {
      record(norm, statistics, microbatch, parts[microbatch]);
    }
    statistics.commit();
    return at::cat({norm->running_mean, norm->running_var});
  };
  const at::Tensor ascending = run({0, 1, 2});
  EXPECT_TRUE(at::equal(ascending, run({2, 0, 1})));
  EXPECT_TRUE(at::equal(ascending, run({1, 2, 0})));
}

TEST(BatchNormStatistics, AverageOverAllStepsWithoutMomentum) {
  nn::BatchNorm1d norm(nn::BatchNorm1dOptions(2).momentum(std::nullopt));
  BatchNormStatistics statistics(norm.ptr());
  at::Tensor sum = at::zeros({2}, at::kDouble);
  for (int step = 0; step < 4; ++step) {
    const at::Tensor batch = at::randn({6, 2}) + step;
    statistics.begin(2);
    record(norm, statistics, 0, batch.slice(0, 0, 3));
    record(norm, statistics, 1, batch.slice(0, 3));
    statistics.commit();
    sum += batch.to(at::kDouble).mean(0);
  }
  EXPECT_TRUE(at::allclose(norm->running_mean.to(at::kDouble), sum / 4, 1e-5, 1e-6));
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 4);
}

TEST(BatchNormStatistics, AdvanceOncePerUseOfASharedModule) {
  ConvNorm net(nn::BatchNorm2dOptions(4), /*num_calls=*/2);
  BatchNormStatistics statistics(net.ptr());
  statistics.begin(2);
  record(net, statistics, 0, at::randn({2, 3, 4, 4}));
  record(net, statistics, 1, at::randn({2, 3, 4, 4}));
  statistics.commit();
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 2);
}

TEST(BatchNormStatistics, StandStillUntilCommitted) {
  nn::BatchNorm1d norm(2);
  const nn::BatchNorm1d fresh(2);
  BatchNormStatistics statistics(norm.ptr());
  for (const int num_microbatches : {1, 2}) {
    statistics.begin(num_microbatches);
    record(norm, statistics, 0, at::randn({4, 2}));
    expect_same_statistics(*norm, *fresh);
  }
  statistics.begin(2);
  statistics.commit();
  expect_same_statistics(*norm, *fresh);
}

TEST(BatchNormStatistics, ForgetWhatIsDiscarded) {
  nn::BatchNorm1d norm(2);
  const nn::BatchNorm1d fresh(2);
  BatchNormStatistics statistics(norm.ptr());
  for (const int num_microbatches : {1, 2}) {
    statistics.begin(num_microbatches);
    record(norm, statistics, 0, at::randn({4, 2}), StatisticsMode::kDiscard);
    statistics.commit();
    expect_same_statistics(*norm, *fresh);
  }
}

TEST(BatchNormStatistics, CountARecomputationOnce) {
  const at::Tensor input = at::randn({4, 2});
  nn::BatchNorm1d once(2);
  nn::BatchNorm1d recomputed(2);
  for (nn::BatchNorm1d* norm : {&once, &recomputed}) {
    BatchNormStatistics statistics(norm->ptr());
    statistics.begin(2);
    record(*norm, statistics, 0, input);
    record(*norm, statistics, 1, input + 1);
    if (norm == &recomputed) {
      record(*norm, statistics, 0, input, StatisticsMode::kDiscard);
    }
    statistics.commit();
  }
  expect_same_statistics(*once, *recomputed);
}

TEST(BatchNormStatistics, KeepNothingOfACallThatThrew) {
  nn::BatchNorm1d norm(2);
  const nn::BatchNorm1d fresh(2);
  BatchNormStatistics statistics(norm.ptr());
  statistics.begin(2);
  const auto half = [&norm](const at::Tensor& input) -> at::Tensor {
    norm(input);
    throw std::runtime_error("after the norm");
  };
  EXPECT_THROW(record(half, statistics, 0, at::randn({4, 2})), std::runtime_error);
  statistics.commit();
  expect_same_statistics(*norm, *fresh);
}

TEST(BatchNormStatistics, AreNotTouchedInEvaluation) {
  nn::BatchNorm1d norm(2);
  norm->running_mean.fill_(5.0);
  norm->eval();
  BatchNormStatistics statistics(norm.ptr());
  statistics.begin(2);
  const at::Tensor input = at::randn({4, 2});
  const at::Tensor output = record(norm, statistics, 0, input);
  EXPECT_TRUE(at::equal(output, norm(input)));
  statistics.commit();
  EXPECT_TRUE(at::equal(norm->running_mean, at::full({2}, 5.0)));
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 0);
}

TEST(BatchNormStatistics, WorkWithoutAffineAndInThreeDimensions) {
  nn::BatchNorm3d stock(nn::BatchNorm3dOptions(2).affine(false));
  nn::BatchNorm3d norm(nn::BatchNorm3dOptions(2).affine(false));
  BatchNormStatistics statistics(norm.ptr());
  statistics.begin(1);
  const at::Tensor input = at::randn({2, 2, 3, 3, 3});
  EXPECT_TRUE(at::equal(stock(input), record(norm, statistics, 0, input)));
  statistics.commit();
  expect_same_statistics(*stock, *norm);
}

TEST(BatchNormStatistics, AreEmptyWhereNothingIsTracked) {
  nn::BatchNorm1d norm(nn::BatchNorm1dOptions(2).track_running_stats(false));
  BatchNormStatistics statistics(norm.ptr());
  EXPECT_TRUE(statistics.empty());
  const at::Tensor input = at::randn({4, 2});
  EXPECT_TRUE(at::equal(record(norm, statistics, 0, input), norm(input)));
  EXPECT_NO_THROW(statistics.commit());
}

TEST(BatchNormStatistics, WorkInHalfPrecisionAndInferenceMode) {
  nn::BatchNorm1d norm(2);
  BatchNormStatistics statistics(norm.ptr());
  statistics.begin(2);
  const c10::InferenceMode inference;
  record(norm, statistics, 0, at::randn({4, 2}).to(at::kBFloat16));
  record(norm, statistics, 1, at::randn({4, 2}).to(at::kBFloat16));
  statistics.commit();
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
  EXPECT_EQ(norm->running_mean.scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace headrace::model
