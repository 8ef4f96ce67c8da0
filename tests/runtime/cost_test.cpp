// What an action costs beside the arithmetic of its layers, counted, so that no clock decides:
// a step over empty layers minus the same layers in a bare loop. bench/action_cost tells the time.
#include <memory>

#include <gtest/gtest.h>

#include "headrace/memory/allocator.h"

#include "tests/runtime/empty_layers.h"
#include "tests/runtime/event_counts.h"

namespace headrace::runtime {
namespace {

constexpr int kWorkers = 4;
constexpr int kMicrobatches = 8;
constexpr int kWarmUpSteps = 20;
constexpr int kSteps = 200;
constexpr double kActions = 2.0 * kWorkers * kMicrobatches * kSteps;

/// Of kSteps steps, per F or B action.
struct Cost {
  double heap_allocations = 0;
  double tensors = 0;
  double notifications = 0;
  double sleeps = 0;
};

template <typename Step, typename Tensors>
Cost cost_of(const Step& step, const Tensors& tensors) {
  for (int i = 0; i < kWarmUpSteps; ++i) step();
  const std::int64_t tensors_before = tensors();
  const test::EventCounter counter;
  for (int i = 0; i < kSteps; ++i) step();
  const test::EventCounts counts = counter.counts();
  return {static_cast<double>(counts.heap_allocations) / kActions,
          static_cast<double>(tensors() - tensors_before) / kActions,
          static_cast<double>(counts.notifications) / kActions,
          static_cast<double>(counts.voluntary_switches) / kActions};
}

Cost cost_of_pipeline() {
  const test::EmptyLayers layers(kWorkers, kMicrobatches);
  Pipeline pipeline = layers.make_pipeline();
  return cost_of([&] { layers.step(pipeline); },
                 [&] {
                   std::int64_t sum = 0;
                   for (const StageMemory& stage : pipeline.memory()) sum += stage.allocations;
                   return sum;
                 });
}

Cost cost_of_bare_loop() {
  test::EmptyLayers layers(kWorkers, kMicrobatches);
  const auto account = std::make_shared<memory::Account>();
  const memory::AccountGuard guard(account);
  return cost_of([&] { layers.bare_step_by_stage(); }, [&] { return account->allocations(); });
}

TEST(Cost, AnActionAllocatesFewObjectsAndNoTensor) {
  if (!test::counts_allocations()) GTEST_SKIP() << "the sanitizer has replaced operator new";
  const Cost own = cost_of_pipeline();
  const Cost bare = cost_of_bare_loop();
  RecordProperty("heap_allocations", std::to_string(own.heap_allocations - bare.heap_allocations));
  EXPECT_LT(own.heap_allocations - bare.heap_allocations, 10.0);
  EXPECT_LT(own.tensors - bare.tensors, 0.1) << "more than the bare loop's " << bare.tensors;
}

TEST(Cost, AnActionWakesAtMostOneThread) {
  const Cost own = cost_of_pipeline();
  // The steps' own: the workers are woken and the caller sleeps until the last one is done.
  const double per_step = (1.0 + kWorkers) * kSteps / kActions;
  // A wait for a packet is one sleep; the margin is for a mutex that happens to be taken.
  EXPECT_LT(own.sleeps, 1.0 + per_step + 0.1);
  if (!test::counts_allocations()) GTEST_SKIP() << "the sanitizer has replaced the conditions";
  const Cost bare = cost_of_bare_loop();
  EXPECT_LT(own.notifications - bare.notifications, 1.0 + per_step);
}

}  // namespace
}  // namespace headrace::runtime
