// headrace's side of the comparison: writes its weights and a batch for the peer, then runs what
// compare.py asks for, one line a request: "<schedule> <M> <rows a microbatch> <steps>", answered
// by "<seconds a step> <loss> <gradient norm>". See README.md.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>

#include "headrace/runtime/pipeline.h"

#include "bench/blocks.h"
#include "bench/samples.h"

namespace {

using headrace::runtime::Pipeline;
using headrace::runtime::PipelineOptions;

constexpr int kWorkers = 2;
constexpr std::int64_t kMostRows = 4096;

/// Raw fp32, one tensor after the other.
void write_floats(const std::string& path, const std::vector<at::Tensor>& tensors) {
  std::ofstream file(path, std::ios::binary);
  for (const at::Tensor& tensor : tensors) {
    file.write(static_cast<const char*>(tensor.const_data_ptr()),
               static_cast<std::streamsize>(tensor.nbytes()));
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void serve(const torch::nn::Sequential& net, const at::Tensor& input, const at::Tensor& target) {
  std::map<std::pair<std::string, int>, Pipeline> pipelines;
  std::string schedule;
  int microbatches = 0;
  std::int64_t rows = 0;
  int steps = 0;
  while (std::cin >> schedule >> microbatches >> rows >> steps) {
    const int blocks = static_cast<int>(net->size());
    const auto [entry, is_new] =
        pipelines.try_emplace({schedule, microbatches}, net,
                              PipelineOptions(kWorkers)
                                  .microbatches(microbatches)
                                  .schedule(schedule)
                                  .layers_per_stage(std::vector<int>(kWorkers, blocks / kWorkers)));
    const at::Tensor x = input.narrow(0, 0, microbatches * rows);
    const at::Tensor y = target.narrow(0, 0, microbatches * rows);
    const headrace::model::Loss loss = headrace::model::mse();
    headrace::runtime::StepResult result = entry->second.step(x, y, loss);
    const double seconds = headrace::bench::seconds_of([&] {
      for (int i = 0; i < steps; ++i) result = entry->second.step(x, y, loss);
    });
    std::printf("%.9g %.9g %.9g\n", seconds / steps, result.loss, result.grad_norm);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s FILE BLOCKS WIDTH HIDDEN   (started by compare.py)\n", argv[0]);
    return 2;
  }
  const std::int64_t width = std::stoll(argv[3]);
  const torch::nn::Sequential net =
      headrace::bench::equal_blocks(std::stoi(argv[2]), width, std::stoll(argv[4]));
  const at::Tensor input = at::randn({kMostRows, width});
  const at::Tensor target = at::randn({kMostRows, width});
  std::vector<at::Tensor> tensors = net->parameters();
  tensors.insert(tensors.end(), {input, target});
  write_floats(argv[1], tensors);
  std::puts("ready");
  std::fflush(stdout);
  serve(net, input, target);
  return 0;
}
