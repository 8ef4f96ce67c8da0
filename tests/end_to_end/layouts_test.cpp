// One recipe in every layout, by the built programs: the same numbers to the bit.
#include <array>
#include <memory>

#include "tests/end_to_end/run_test.h"

namespace headrace::app {
namespace {

struct Layout {
  std::string stages;
  std::string schedule;
  std::string recomputation;

  std::string name() const { return stages + "-" + schedule + "-" + recomputation; }
};

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const char* stages : {"1", "2", "4"}) {
    for (const char* schedule : {"Sequential", "GPipe", "1F1B"}) {
      for (const char* mode : {"never", "except_last", "always"}) {
        all.push_back({stages, schedule, mode});
      }
    }
  }
  return all;
}

/// The texts of loss, gradient norm and learning rate, up to the token count: what all layouts
/// share.
std::vector<std::string> numbers(const std::vector<std::string>& lines) {
  std::vector<std::string> all;
  for (const std::string& line : lines) all.push_back(line.substr(0, line.find(",\"step_seconds")));
  return all;
}

class LayoutsTest : public RunTest {
 protected:
  std::unique_ptr<Process> start(const Layout& layout) const {
    return std::make_unique<Process>(train({"--parallelism.pipeline_parallel_size=" + layout.stages,
                                            "--parallelism.pipeline_schedule=" + layout.schedule,
                                            "--activation_checkpoint.mode=" + layout.recomputation,
                                            "--run.folder=" + layout.name()}),
                                     here());
  }

  /// Two at a time: most of a run this small is the start of the program.
  void run_all(const std::vector<Layout>& all) {
    for (std::size_t i = 0; i < all.size(); i += 2) {
      std::vector<std::unique_ptr<Process>> processes;
      for (std::size_t j = i; j < std::min(i + 2, all.size()); ++j) {
        processes.push_back(start(all[j]));
      }
      for (const auto& process : processes) {
        const Outcome outcome = process->wait();
        ASSERT_EQ(outcome.code, 0) << outcome.err;
      }
    }
  }
};

TEST_F(LayoutsTest, GiveTheSameLossesNormsAndWeightsToTheBit) {
  const std::vector<Layout> all = layouts();
  ASSERT_NO_FATAL_FAILURE(run_all(all));
  const std::string reference = all[0].name();
  const std::vector<std::string> expected = numbers(lines(reference + "/metrics.jsonl"));
  ASSERT_EQ(expected.size(), 3U);
  EXPECT_NE(expected[0].find("\"loss\":"), std::string::npos) << expected[0];
  EXPECT_NE(expected[0].find("\"grad_norm\":"), std::string::npos) << expected[0];
  for (const Layout& layout : all) {
    EXPECT_EQ(numbers(lines(layout.name() + "/metrics.jsonl")), expected) << layout.name();
    const Outcome diff = run({"checkpoint", "diff", reference, layout.name()}, here());
    EXPECT_EQ(diff.code, 0) << layout.name() << diff.out << diff.err;
  }
}

TEST_F(LayoutsTest, AnotherSeedGivesOtherNumbers) {
  for (const char* seed : {"1", "2"}) {
    const Outcome outcome =
        run(train({std::string("--debug.seed=") + seed, std::string("--run.folder=seed") + seed}),
            here());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_NE(numbers(lines("seed1/metrics.jsonl")), numbers(lines("seed2/metrics.jsonl")));
  EXPECT_EQ(run({"checkpoint", "diff", "seed1", "seed2"}, here()).code, 1);
}

}  // namespace
}  // namespace headrace::app
