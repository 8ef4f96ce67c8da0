// The bitwise ladder: whatever the layout, the same losses, norms, weights and buffers to the bit.
#include <ostream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "headrace/runtime/pipeline.h"

#include "tests/support/bits.h"
#include "tests/support/nets.h"

namespace headrace::runtime {
namespace {

struct Layout {
  std::string task;
  int workers;
  std::string schedule;
  Remat remat;
  int rows;

  friend std::ostream& operator<<(std::ostream& out, const Layout& l) {
    return out << l.task << " K=" << l.workers << ' ' << l.schedule << " remat "
               << static_cast<int>(l.remat) << " rows " << l.rows;
  }
};

struct Trace {
  std::vector<double> losses;
  std::vector<double> norms;
  test::Named parameters;
  test::Named buffers;
};

constexpr int kMicrobatches = 4;

/// Stages of about equal layer counts, none of which begins with an in-place layer: a recomputed
/// stage may not (pipeline_test).
std::vector<int> even_cut(const torch::nn::Sequential& net, int workers) {
  const int layers = static_cast<int>(net->size());
  std::vector<int> counts;
  int first = 0;
  for (int s = 1; s <= workers; ++s) {
    int end = s * layers / workers;
    const auto in_place = [&] {
      std::ostringstream text;
      text << *net->ptr(end);
      return text.str().find("inplace=true") != std::string::npos;
    };
    while (end < layers && in_place()) ++end;
    counts.push_back(end - first);
    first = end;
  }
  return counts;
}

Trace train(const Layout& layout) {
  test::Task task = test::task(layout.task, layout.rows);
  optim::OptimizerSettings settings;
  settings.lr = 1e-2;
  PipelineOptions options(layout.workers);
  options.microbatches(kMicrobatches)
      .schedule(layout.schedule)
      .remat(layout.remat)
      .balance(Balance::kParameters)
      .optimizer(optim::optimizer_factory(settings))
      .max_norm(0.5)
      .seed(7);
  options.layers_per_stage(even_cut(task.net, layout.workers));
  Pipeline pipeline(task.net, options);
  Trace trace;
  for (int i = 0; i < 3; ++i) {
    const StepResult result = pipeline.step(task.input, task.target, model::cross_entropy());
    trace.losses.push_back(result.loss);
    trace.norms.push_back(result.grad_norm);
  }
  trace.parameters = test::snapshot(pipeline.named_parameters());
  trace.buffers = test::snapshot(pipeline.named_buffers());
  return trace;
}

class Ladder : public testing::TestWithParam<Layout> {};

TEST_P(Ladder, EqualsOneStageToTheBit) {
  const Layout layout = GetParam();
  static std::map<std::pair<std::string, int>, Trace> references;
  const auto [entry, is_new] = references.try_emplace({layout.task, layout.rows});
  if (is_new) entry->second = train({layout.task, 1, "GPipe", Remat::kNever, layout.rows});
  const Trace& expected = entry->second;
  const Trace actual = train(layout);
  EXPECT_EQ(actual.losses, expected.losses);
  EXPECT_EQ(actual.norms, expected.norms);
  EXPECT_EQ(test::differing(actual.parameters, expected.parameters), "");
  EXPECT_EQ(test::differing(actual.buffers, expected.buffers), "");
  EXPECT_LT(actual.losses.back(), actual.losses.front()) << "nothing was learnt";
}

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const char* task : {"mlp", "text", "images", "images_channels_last", "transposed"}) {
    for (const int workers : {1, 2, 3, 4}) {
      for (const char* schedule : {"Sequential", "GPipe", "1F1B"}) {
        for (const Remat remat : {Remat::kNever, Remat::kExceptLast, Remat::kAlways}) {
          all.push_back({task, workers, schedule, remat, 12});
        }
      }
      all.push_back({task, workers, "1F1B", Remat::kExceptLast, 10});  // 3,3,2,2
      all.push_back({task, workers, "GPipe", Remat::kAlways, 3});      // fewer than M
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Layouts, Ladder, testing::ValuesIn(layouts()));

}  // namespace
}  // namespace headrace::runtime
