// What does the runtime itself cost? Processor time of a step over empty layers, minus the same
// layers called in a bare loop, per F or B action; and what was allocated and woken. See README.md.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>

#include <ATen/Parallel.h>

#include "headrace/memory/allocator.h"

#include "bench/samples.h"
#include "tests/runtime/empty_layers.h"
#include "tests/runtime/event_counts.h"

namespace {

using headrace::bench::fixed;
using headrace::test::EmptyLayers;
using headrace::test::EventCounts;

constexpr int kMicrobatches = 8;
constexpr int kBest = 5;

/// Of all threads of the process, in and out of the kernel.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Processor time of `steps` calls of `step`.
template <typename Step>
double cpu_of(int steps, const Step& step) {
  const double before = cpu_seconds();
  for (int i = 0; i < steps; ++i) step();
  return cpu_seconds() - before;
}

template <typename Step>
EventCounts events_of(int steps, const Step& step) {
  const headrace::test::EventCounter counter;
  for (int i = 0; i < steps; ++i) step();
  return counter.counts();
}

std::int64_t tensor_allocations(const headrace::runtime::Pipeline& pipeline) {
  std::int64_t sum = 0;
  for (const auto& stage : pipeline.memory()) sum += stage.allocations;
  return sum;
}

void measure(int workers, int steps) {
  EmptyLayers layers(workers, kMicrobatches);
  headrace::runtime::Pipeline pipeline = layers.make_pipeline();
  const auto pipeline_step = [&] { layers.step(pipeline); };
  const auto bare = [&] { layers.bare_step(); };
  const auto bare_by_stage = [&] { layers.bare_step_by_stage(); };
  double best = std::numeric_limits<double>::max();
  double best_bare = best;
  double best_by_stage = best;
  double wall = best;
  for (int run = 0; run < kBest; ++run) {
    wall = std::min(wall, headrace::bench::seconds_of(
                              [&] { best = std::min(best, cpu_of(steps, pipeline_step)); }));
    best_bare = std::min(best_bare, cpu_of(steps, bare));
    best_by_stage = std::min(best_by_stage, cpu_of(steps, bare_by_stage));
  }
  const double actions = 2.0 * workers * kMicrobatches * steps;
  const auto microseconds = [&](double seconds) { return fixed(seconds / actions * 1e6, 2); };

  const int counted_steps = 200;
  const double counted_actions = 2.0 * workers * kMicrobatches * counted_steps;
  const auto each = [&](std::int64_t count) {
    return fixed(static_cast<double>(count) / counted_actions, 2);
  };
  const std::int64_t tensors_before = tensor_allocations(pipeline);
  const EventCounts own = events_of(counted_steps, pipeline_step);
  const std::int64_t tensors = tensor_allocations(pipeline) - tensors_before;
  const EventCounts plain = events_of(counted_steps, bare_by_stage);
  headrace::bench::print_row(
      {std::to_string(workers), microseconds(best), microseconds(best_by_stage),
       microseconds(best_bare), microseconds(best - best_by_stage), microseconds(best - best_bare),
       microseconds(wall), each(own.heap_allocations), each(plain.heap_allocations), each(tensors),
       each(own.notifications), each(own.voluntary_switches), each(own.involuntary_switches)});
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000;
  const int only = argc > 2 ? std::atoi(argv[2]) : 0;
  headrace::memory::install_allocator();
  at::set_num_threads(1);
  std::printf("1F1B, M = %d, one empty layer a stage; %d steps, best of %d; per F or B action\n\n",
              kMicrobatches, steps, kBest);
  headrace::bench::print_header({"K", "CPU us", "bare, a graph a stage", "bare, one graph",
                                 "own cost (stage)", "own cost (one graph)", "wall us",
                                 "heap allocations", "of the bare loop", "tensors", "notifications",
                                 "went to sleep", "lost the core"});
  for (int workers = 2; workers <= 8; ++workers) {
    if (only == 0 || only == workers) measure(workers, steps);
  }
  return 0;
}
