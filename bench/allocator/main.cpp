// Which CPU allocator should training use? Two threads train Transformer blocks, each its own, in
// a child process per run; the runs of the three allocators take turns. See README.md.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "headrace/memory/allocator.h"

namespace {

namespace memory = headrace::memory;

constexpr std::array<const char*, 3> kModes{"glibc", "mallopt", "headrace"};
constexpr int kWarmUpSteps = 3;
constexpr int kThreads = 2;
constexpr int kBlocks = 2;
constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kLength = 64;
constexpr std::int64_t kHeads = 4;

struct Sample {
  double wall_seconds = 0;
  double cpu_seconds = 0;  // of both threads, in and out of the kernel
  double system_seconds = 0;
  double faults = 0;
  double peak_mib = 0;
};

// One pre-norm Transformer block with leaf parameters.
class TransformerBlock {
 public:
  explicit TransformerBlock(std::int64_t width)
      : width_(width),
        qkv_(parameter(3 * width, width)),
        out_(parameter(width, width)),
        up_(parameter(4 * width, width)),
        down_(parameter(width, 4 * width)),
        scale_(at::ones({width}).requires_grad_()) {}

  // B = batch, T = positions, D = width
  at::Tensor forward(const at::Tensor& x_BTD) const {
    const auto heads = at::linear(at::layer_norm(x_BTD, {width_}, scale_), qkv_)
                           .view({kBatch, kLength, 3, kHeads, width_ / kHeads})
                           .permute({2, 0, 3, 1, 4});
    const at::Tensor scores = heads[0].matmul(heads[1].transpose(-1, -2)) /
                              std::sqrt(static_cast<double>(width_) / kHeads);
    const at::Tensor mixed = scores.softmax(-1).matmul(heads[2]).transpose(1, 2).reshape_as(x_BTD);
    const at::Tensor y_BTD = x_BTD + at::linear(mixed, out_);
    return y_BTD +
           at::linear(at::gelu(at::linear(at::layer_norm(y_BTD, {width_}, scale_), up_)), down_);
  }

 private:
  static at::Tensor parameter(std::int64_t rows, std::int64_t columns) {
    return (at::randn({rows, columns}) / std::sqrt(static_cast<double>(columns))).requires_grad_();
  }

  std::int64_t width_;
  at::Tensor qkv_, out_, up_, down_, scale_;
};

void train(const std::vector<TransformerBlock>& blocks, std::int64_t width, int steps) {
  at::set_num_threads(1);
  const memory::AccountGuard guard(std::make_shared<memory::Account>());
  for (int step = 0; step < steps; ++step) {
    at::Tensor x = at::ones({kBatch, kLength, width});
    for (const TransformerBlock& block : blocks) {
      x = block.forward(x);
    }
    x.square().mean().backward();
  }
}

void train_on_all_threads(const std::vector<TransformerBlock> (&blocks)[kThreads],
                          std::int64_t width, int steps) {
  std::vector<std::jthread> threads;
  for (const auto& own : blocks) {
    threads.emplace_back([&own, width, steps] { train(own, width, steps); });
  }
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu(const rusage& usage) {
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void use(const std::string& mode) {
  if (mode == "headrace") {
    memory::install_allocator();
  } else if (mode == "mallopt") {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc takes
    mallopt(M_TRIM_THRESHOLD, 2'000'000'000);
    mallopt(M_TOP_PAD, 64 << 20);
  }
}

void run_child(const std::string& mode, std::int64_t width, int steps) {
  use(mode);
  std::vector<TransformerBlock> blocks[kThreads];
  for (auto& own : blocks) {
    for (int i = 0; i < kBlocks; ++i) {
      own.emplace_back(width);
    }
  }
  train_on_all_threads(blocks, width, kWarmUpSteps);
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_SELF, &before);
  const auto start = std::chrono::steady_clock::now();
  train_on_all_threads(blocks, width, steps);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  getrusage(RUSAGE_SELF, &after);
  std::printf("%.6f %.6f %.6f %ld %ld\n", wall.count(), cpu(after) - cpu(before),
              seconds(after.ru_stime) - seconds(before.ru_stime),
              after.ru_minflt - before.ru_minflt, after.ru_maxrss);
}

Sample run_parent(const std::string& program, const char* mode, std::int64_t width, int steps) {
  const std::string command = "'" + program + "' --child " + mode + " " + std::to_string(width) +
                              " " + std::to_string(steps);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  Sample sample;
  double peak_kib = 0;
  if (!pipe ||
      std::fscanf(pipe.get(), "%lf %lf %lf %lf %lf", &sample.wall_seconds, &sample.cpu_seconds,
                  &sample.system_seconds, &sample.faults, &peak_kib) != 5) {
    throw std::runtime_error("no result from: " + command);
  }
  sample.peak_mib = peak_kib / 1024;
  return sample;
}

// One cell: the median, and the least and the most.
template <typename Get>
void print(const std::vector<Sample>& samples, int decimals, const Get& get) {
  std::vector<double> values;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    values.push_back(get(samples[i], i));
  }
  std::sort(values.begin(), values.end());
  std::printf(" %.*f (%.*f to %.*f) |", decimals, values[values.size() / 2], decimals,
              values.front(), decimals, values.back());
}

void compare(const std::string& program, std::int64_t width, int steps, int runs) {
  std::array<std::vector<Sample>, kModes.size()> samples;
  for (int run = 0; run < runs; ++run) {
    for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
      samples[mode].push_back(run_parent(program, kModes[mode], width, steps));
    }
  }
  std::printf("\nwidth %ld, %d steps, %d runs each: median (least to most)\n\n", width, steps,
              runs);
  std::printf(
      "| allocator | wall s | wall / glibc's of the round | CPU s | CPU / glibc's "
      "| system s | page faults | peak MiB |\n| --- | --- | --- | --- | --- | --- | --- "
      "| --- |\n");
  for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
    const auto& own = samples[mode];
    const auto& glibc = samples[0];
    std::printf("| %s |", kModes[mode]);
    print(own, 2, [](const Sample& s, auto) { return s.wall_seconds; });
    print(own, 2, [&](const Sample& s, auto i) { return s.wall_seconds / glibc[i].wall_seconds; });
    print(own, 2, [](const Sample& s, auto) { return s.cpu_seconds; });
    print(own, 2, [&](const Sample& s, auto i) { return s.cpu_seconds / glibc[i].cpu_seconds; });
    print(own, 2, [](const Sample& s, auto) { return s.system_seconds; });
    print(own, 0, [](const Sample& s, auto) { return s.faults; });
    print(own, 0, [](const Sample& s, auto) { return s.peak_mib; });
    std::printf("\n");
  }
}

std::string own_path() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--child") {
    run_child(argv[2], std::atol(argv[3]), std::atoi(argv[4]));
    return 0;
  }
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 11;
  compare(own_path(), 256, 10, runs);
  compare(own_path(), 64, 80, runs);
  return 0;
}
