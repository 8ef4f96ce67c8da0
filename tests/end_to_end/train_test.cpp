// Whole runs of the built programs: what they leave behind, how they end, what they refuse.
#include <csignal>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/run_test.h"

namespace headrace::app {
namespace {

namespace fs = std::filesystem;

using TrainTest = RunTest;

const std::vector<std::string> kEndless{"--training.steps=1000000", "--run.folder=run"};

TEST_F(TrainTest, LeavesACompleteRunFolder) {
  const Outcome outcome =
      run(train({"--run.folder=run", "--parallelism.pipeline_parallel_size=2"}), here());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* file : {"config.toml", "plan.json", "profile.json", "log.txt", "metrics.jsonl",
                           "checkpoints/step-00000003/manifest.json",
                           "checkpoints/step-00000003/model-00001-of-00001.safetensors"}) {
    EXPECT_TRUE(fs::is_regular_file(path("run") / file)) << file;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path("run") / "checkpoints"), {}), 1)
      << "a temporary folder is left over";
  EXPECT_EQ(lines("run/metrics.jsonl").size(), 3U);
  const auto plan = nlohmann::json::parse(text("run/plan.json"));
  EXPECT_EQ(plan.at("format_version"), 1);
  EXPECT_EQ(plan.at("stages").size(), 2U);
  for (const char* told : {"run:    run", "corpus: 6 catalogues", "step: 1  loss: ", "step: 3  ",
                           "saved:  run/checkpoints/step-00000003", "trained 3 steps",
                           "held-out pairs", "measured/step", "translation"}) {
    EXPECT_NE(outcome.out.find(told), std::string::npos) << told << '\n' << outcome.out;
    EXPECT_NE(text("run/log.txt").find(told), std::string::npos) << "not in the log: " << told;
  }
}

TEST_F(TrainTest, RunsAgainFromTheConfigurationThatItLeft) {
  ASSERT_EQ(run(train({"--run.folder=a", "--optimizer.lr=0.01"}), here()).code, 0);
  ASSERT_EQ(run(train({"--run.folder=b"}, "a/config.toml"), here()).code, 0);
  EXPECT_EQ(run({"checkpoint", "diff", "a", "b"}, here()).code, 0);
}

TEST_F(TrainTest, WithJsonPrintsOneDocumentAndNothingElse) {
  const Outcome outcome = run(train({"--json", "--run.folder=run"}), here());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("format_version"), 1);
  EXPECT_EQ(document.at("end"), "steps");
  EXPECT_EQ(document.at("steps"), 3);
  EXPECT_EQ(document.at("run_folder"), "run");
  EXPECT_GT(document.at("first_loss").get<double>(), 0);
  EXPECT_NE(outcome.err.find("step: 1  loss: "), std::string::npos) << "lines go to stderr";
}

TEST_F(TrainTest, TheProgramWithLibTorchDoesNotTrainOnADryRun) {
  ProcessOptions options = here();
  options.program.replace_filename("headrace-torch");
  const Outcome outcome = run(train({"--dry-run", "--run.folder=run"}), options);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("call headrace"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(TrainTest, ASignalEndsItBetweenStepsWithWeightsSaved) {
  for (const auto& [number, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    SCOPED_TRACE(code);
    Process process(train({"--training.steps=1000000", "--run.folder=" + std::to_string(code)}),
                    here());
    ASSERT_TRUE(process.prints("step: 2  ")) << process.wait().err;
    process.signal(number);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.code, code) << outcome.err;
    const std::string folder = std::to_string(code);
    const std::size_t steps = lines(folder + "/metrics.jsonl").size();
    EXPECT_NE(outcome.err.find("stopped by signal " + std::to_string(number) + " after step " +
                               std::to_string(steps)),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(run({"checkpoint", "diff", folder, folder}, here()).code, 0) << "weights are whole";
    EXPECT_EQ(outcome.out.find("held-out"), std::string::npos) << "no evaluation after a signal";
  }
}

TEST_F(TrainTest, ASecondSignalEndsItAtOnce) {
  test::write_small_corpus(path("data"), 6, 800);
  Process process(train({"--run.folder=run", "--model.width=256", "--model.feed_forward=1024",
                         "--training.global_batch_size=4000", "--training.micro_batch_size=4000",
                         "--parallelism.pipeline_parallel_size=1"}),
                  here());
  ASSERT_TRUE(process.prints("model:")) << process.wait().err;
  // In the middle of the first step, which takes seconds. Two signals sent at once may arrive as
  // one: the second follows the answer to the first.
  process.signal(SIGINT);
  ASSERT_TRUE(process.warns("a second signal ends it at once")) << process.wait().err;
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(outcome.out.find("step: 1"), std::string::npos) << "the step was still finished";
  EXPECT_FALSE(fs::exists(path("run") / "checkpoints"));
}

TEST_F(TrainTest, ASignalEndsTheEvaluationToo) {
  test::write_small_corpus(path("data"), 6, 4000);
  Process process(train({"--run.folder=run", "--training.steps=1", "--evaluation.pairs=5000",
                         "--evaluation.batch_size=1"}),
                  here());
  ASSERT_TRUE(process.prints("saved:")) << process.wait().err;
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(outcome.out.find("held-out pairs"), std::string::npos);
}

TEST_F(TrainTest, NumbersThatAreNotFiniteEndItWithFive) {
  const Outcome stopped = run(train({"--run.folder=stop", "--training.steps=100",
                                     "--training.on_nonfinite=stop", "--optimizer.lr=1e30"}),
                              here());
  EXPECT_EQ(stopped.code, 5) << stopped.err;
  EXPECT_NE(stopped.err.find("training.on_nonfinite is \"stop\""), std::string::npos);
  EXPECT_EQ(lines("stop/metrics.jsonl").size(), 2U);
  const Outcome skipped =
      run(train({"--run.folder=skip", "--training.steps=100", "--optimizer.lr=1e30"}), here());
  EXPECT_EQ(skipped.code, 5) << skipped.err;
  EXPECT_NE(skipped.err.find("10 in a row"), std::string::npos) << skipped.err;
  const std::vector<std::string> metrics = lines("skip/metrics.jsonl");
  ASSERT_EQ(metrics.size(), 11U) << "one step, then ten that were skipped";
  EXPECT_NE(metrics[10].find("\"skipped\":true,\"nonfinite\":true"), std::string::npos);
}

TEST_F(TrainTest, ARunFolderInUseIsRefused) {
  Process first(train(kEndless), here());
  ASSERT_TRUE(first.prints("step: 1  ")) << first.wait().err;
  const Outcome second = run(train(kEndless), here());
  EXPECT_EQ(second.code, 2);
  EXPECT_NE(second.err.find("in use by process " + std::to_string(first.id())), std::string::npos)
      << second.err;
  first.signal(SIGINT);
  EXPECT_EQ(first.wait().code, 130);
  const Outcome third = run(train(kEndless), here());
  EXPECT_EQ(third.code, 2);
  EXPECT_NE(third.err.find("already holds a run"), std::string::npos) << third.err;
}

TEST_F(TrainTest, AnEmptyCorpusIsRefusedAndLeavesNothing) {
  fs::create_directory(path("empty"));
  for (const char* root : {"empty", "nowhere"}) {
    const Outcome outcome =
        run(train({std::string("--data.root=") + root, "--run.folder=run"}), here());
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("iso-codes"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(root), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(path("run")));
  }
}

TEST_F(TrainTest, ABrokenCatalogueIsTakenAsItIsWithAWarning) {
  fs::create_directories(path("data") / "zz" / "LC_MESSAGES");
  base::write_file(path("data") / "zz" / "LC_MESSAGES" / "iso_639-3.mo", "rubbish");
  const Outcome outcome = run(train({"--run.folder=run"}), here());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("(1 damaged)"), std::string::npos) << outcome.out;
  EXPECT_NE(text("run/log.txt").find("zz/LC_MESSAGES/iso_639-3.mo"), std::string::npos);
}

TEST(Doctor, TellsWhatWorks) {
  const Outcome table = run({"doctor"}, {.seconds_allowed = 120});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("forward and backward"), std::string::npos) << table.out;
  const Outcome json = run({"doctor", "--json"}, {.seconds_allowed = 120});
  EXPECT_EQ(json.code, 0) << json.err;
  const auto document = nlohmann::json::parse(json.out);
  EXPECT_EQ(document.at("format_version"), 1);
  EXPECT_GE(document.at("findings").size(), 6U);
  for (const auto& finding : document.at("findings")) {
    EXPECT_TRUE(finding.at("works").is_boolean());
    if (finding.at("what") != "data: iso-codes" && finding.at("what") != "accelerators") {
      EXPECT_TRUE(finding.at("works")) << finding;
    }
  }
}

}  // namespace
}  // namespace headrace::app
