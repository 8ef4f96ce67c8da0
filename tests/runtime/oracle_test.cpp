// Against plain LibTorch: the same microbatches in the same order give the same bits.
#include "tests/support/oracle.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/rnn.h>

#include "headrace/runtime/microbatch.h"
#include "headrace/runtime/pipeline.h"

#include "tests/support/bits.h"
#include "tests/support/nets.h"

namespace headrace::runtime {
namespace {

/// The oracle draws from the global generator: compare without dropout.
void switch_dropout_off(torch::nn::Module& net) {
  for (const auto& module : net.modules()) {
    if (auto* dropout = module->as<torch::nn::Dropout>()) dropout->options.p(0);
    if (auto* dropout = module->as<torch::nn::Dropout2d>()) dropout->options.p(0);
    if (auto* lstm = module->as<torch::nn::LSTM>()) lstm->options.dropout(0);
  }
}

class Oracle : public testing::TestWithParam<std::tuple<std::string, int, int>> {};

TEST_P(Oracle, GivesTheSameLossAndGradientsToTheBit) {
  const auto [name, workers, rows] = GetParam();
  test::Task task = test::task(name, rows);
  switch_dropout_off(*task.net);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double loss =
      test::oracle_backward(task.net, task.input, task.target, microbatch_sizes(rows, 4));
  at::set_num_threads(threads);

  test::Named parameters;
  for (const auto& item : task.net->named_parameters()) {
    parameters.emplace_back(item.key(), item.value());
  }
  const test::Named expected = test::gradients(parameters);
  Pipeline pipeline(task.net, PipelineOptions(workers).microbatches(4));
  const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
  EXPECT_EQ(result.loss, loss);
  EXPECT_EQ(test::differing(test::gradients(pipeline.named_parameters()), expected), "");
}

INSTANTIATE_TEST_SUITE_P(Tasks, Oracle,
                         testing::Combine(testing::Values("mlp", "text", "images",
                                                          "images_channels_last", "transposed"),
                                          testing::Values(1, 2, 4), testing::Values(12, 10)));

TEST(Oracle, IgnoredTargetsWeighNothing) {
  test::Task task = test::text(9);
  switch_dropout_off(*task.net);
  task.target.index_put_({at::indexing::Slice(0, 5), at::indexing::Slice(1, 7)}, -100);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double loss =
      test::oracle_backward(task.net, task.input, task.target, microbatch_sizes(9, 2));
  at::set_num_threads(threads);
  Pipeline pipeline(task.net, PipelineOptions(2).microbatches(2));
  const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
  EXPECT_EQ(result.loss, loss);
  EXPECT_EQ(result.weight, 5 + 4 * 7);
}

}  // namespace
}  // namespace headrace::runtime
