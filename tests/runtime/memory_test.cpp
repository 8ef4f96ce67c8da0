// What stays live, stage by stage: counted, not guessed.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "headrace/runtime/pipeline.h"

#include "tests/support/nets.h"

namespace headrace::runtime {
namespace {
namespace nn = torch::nn;

std::vector<std::int64_t> live(const Pipeline& pipeline) {
  std::vector<std::int64_t> bytes;
  for (const StageMemory& stage : pipeline.memory()) bytes.push_back(stage.live_bytes);
  return bytes;
}

TEST(Memory, LiveBytesAreTheSameAfterEachStepFromTheThirdOn) {
  for (const char* schedule : {"GPipe", "1F1B"}) {
    test::Task task = test::images(12);
    Pipeline pipeline(task.net, PipelineOptions(3)
                                    .microbatches(4)
                                    .schedule(schedule)
                                    .balance(Balance::kParameters)
                                    .optimizer(optim::optimizer_factory({.name = "AdamW"})));
    std::vector<std::int64_t> expected;
    for (int i = 0; i < 1000; ++i) {
      pipeline.step(task.input, task.target, model::cross_entropy());
      if (i == 2) expected = live(pipeline);
      if (i > 2) {
        ASSERT_EQ(live(pipeline), expected) << schedule << " step " << i;
      }
    }
  }
}

/// Sigmoids keep their results: each layer pair leaves `width` floats a row.
nn::Sequential chain(int pairs, int width) {
  torch::manual_seed(1);
  nn::Sequential net;
  for (int i = 0; i < pairs; ++i) {
    net->push_back(nn::Linear(width, width));
    net->push_back(nn::Sigmoid());
  }
  return net;
}

std::vector<std::int64_t> peaks(const std::string& schedule, Remat remat, int workers,
                                int microbatches) {
  constexpr int kWidth = 64;
  constexpr int kPairs = 16;
  const std::int64_t rows = 64LL * microbatches;
  Pipeline pipeline(chain(kPairs, kWidth),
                    PipelineOptions(workers)
                        .microbatches(microbatches)
                        .schedule(schedule)
                        .remat(remat)
                        .layers_per_stage(std::vector<int>(workers, 2 * kPairs / workers)));
  const at::Tensor input = at::randn({rows, kWidth});
  const at::Tensor target = at::zeros({rows}, at::kLong);
  for (int i = 0; i < 2; ++i) pipeline.step(input, target, model::cross_entropy());
  pipeline.reset_peak();
  const std::vector<std::int64_t> before = live(pipeline);
  pipeline.step(input, target, model::cross_entropy());
  std::vector<std::int64_t> result;
  for (std::size_t s = 0; s < before.size(); ++s) {
    result.push_back(pipeline.memory()[s].peak_bytes - before[s]);
  }
  return result;
}

TEST(Memory, PeakGrowsWithTheMicrobatchesThatAreAliveAtOnce) {
  const auto gpipe = peaks("GPipe", Remat::kNever, 4, 8);
  const auto one_f_one_b = peaks("1F1B", Remat::kNever, 4, 8);
  EXPECT_GT(gpipe[3], 4 * one_f_one_b[3]) << "8 microbatches live against 1";
  EXPECT_GT(one_f_one_b[0], 2 * one_f_one_b[3]) << "4 microbatches live against 1";
}

TEST(Memory, RematerialisationKeepsInputsOnly) {
  const auto never = peaks("GPipe", Remat::kNever, 2, 8);
  const auto always = peaks("GPipe", Remat::kAlways, 2, 8);
  const auto except_last = peaks("GPipe", Remat::kExceptLast, 2, 8);
  EXPECT_LT(2 * always[0], never[0]);
  EXPECT_LT(always[0], except_last[0]);
  EXPECT_LT(except_last[0], never[0]);
}

}  // namespace
}  // namespace headrace::runtime
