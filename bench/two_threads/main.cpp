// Does a pipeline of two workers use two cores? K = 2 beside K = 1 and beside plain LibTorch with
// one and with two intra-op threads; all variants take turns in each round. See README.md.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "headrace/runtime/pipeline.h"

#include "bench/blocks.h"
#include "bench/samples.h"

namespace {

using headrace::bench::fixed;
using headrace::bench::median;
using headrace::bench::ratios;
using headrace::bench::Samples;
using headrace::bench::spread;
using headrace::runtime::Pipeline;
using headrace::runtime::PipelineOptions;

constexpr int kBlocks = 8;
constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kHidden = 1024;
constexpr std::int64_t kRows = 64;  // of a microbatch
constexpr int kMicrobatchesPerSample = 16;

struct Batch {
  at::Tensor input;
  at::Tensor target;
};

/// Forward and backward of one batch in `parts` microbatches, in plain LibTorch. The loss is the
/// one that the Pipeline computes: squared error, averaged over all elements.
void plain_step(torch::nn::Sequential& net, const Batch& batch, std::int64_t parts) {
  for (at::Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
  const std::int64_t rows = batch.input.size(0) / parts;
  for (std::int64_t part = 0; part < parts; ++part) {
    const at::Tensor output = net->forward(batch.input.narrow(0, part * rows, rows));
    const at::Tensor loss =
        at::mse_loss(output, batch.target.narrow(0, part * rows, rows), at::Reduction::Sum) /
        static_cast<double>(batch.target.numel());
    loss.backward();
  }
}

Pipeline make_pipeline(const torch::nn::Sequential& net, int workers, int microbatches,
                       const std::string& schedule) {
  return Pipeline(net, PipelineOptions(workers)
                           .microbatches(microbatches)
                           .schedule(schedule)
                           .layers_per_stage(std::vector<int>(workers, kBlocks / workers)));
}

enum Variant { kOneWorker, kGPipe, kOneFOneB, kPlain1, kPlain2, kPlain2Whole, kNumVariants };

void compare(torch::nn::Sequential& net, int microbatches, int rounds) {
  const Batch batch{at::randn({microbatches * kRows, kWidth}),
                    at::randn({microbatches * kRows, kWidth})};
  const headrace::model::Loss loss = headrace::model::mse();
  Pipeline one = make_pipeline(net, 1, microbatches, "1F1B");
  Pipeline gpipe = make_pipeline(net, 2, microbatches, "GPipe");
  Pipeline one_f_one_b = make_pipeline(net, 2, microbatches, "1F1B");
  const auto pipeline_step = [&](Pipeline& pipeline) {
    return [&] { pipeline.step(batch.input, batch.target, loss); };
  };
  const auto plain = [&](int threads, int parts) {
    return [&net, &batch, threads, parts] {
      at::set_num_threads(threads);
      plain_step(net, batch, parts);
    };
  };
  const std::vector<std::function<void()>> step{pipeline_step(one),         pipeline_step(gpipe),
                                                pipeline_step(one_f_one_b), plain(1, microbatches),
                                                plain(2, microbatches),     plain(2, 1)};
  const int steps = std::max(1, kMicrobatchesPerSample / microbatches);
  std::vector<Samples> seconds(kNumVariants);
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    for (int variant = 0; variant < kNumVariants; ++variant) {
      step[variant]();
      const double sample = headrace::bench::seconds_of([&] {
        for (int i = 0; i < steps; ++i) step[variant]();
      });
      if (round >= 0) seconds[variant].push_back(sample / steps);
    }
  }
  const double ideal = 2.0 * microbatches / (microbatches + 1);
  for (const auto& [name, two] : {std::pair("1F1B", kOneFOneB), std::pair("GPipe", kGPipe)}) {
    const Samples gain = ratios(seconds[kOneWorker], seconds[two]);
    headrace::bench::print_row({std::to_string(microbatches), name,
                                fixed(median(seconds[two]) * 1e3, 1), fixed(ideal, 2),
                                spread(gain, 2), fixed(median(gain) / ideal, 2),
                                spread(ratios(seconds[kPlain1], seconds[two]), 2),
                                spread(ratios(seconds[kPlain2], seconds[two]), 2),
                                spread(ratios(seconds[kPlain2Whole], seconds[two]), 2)});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 11;
  torch::nn::Sequential net = headrace::bench::equal_blocks(kBlocks, kWidth, kHidden);
  std::printf(
      "%d blocks %ld -> %ld -> %ld, %ld rows a microbatch, %d rounds: median (least to most) of "
      "the ratios of each round\n\n",
      kBlocks, kWidth, kHidden, kWidth, kRows, rounds);
  headrace::bench::print_header({"M", "schedule", "K = 2, ms a step", "ideal", "K = 1 / K = 2",
                                 "of the ideal", "plain, 1 thread / K = 2",
                                 "plain, 2 threads / K = 2",
                                 "plain, 2 threads, undivided batch / K = 2"});
  for (const int microbatches : {1, 2, 4, 8, 16, 32}) compare(net, microbatches, rounds);
  return 0;
}
