// headrace train before any training: what is refused, with exit code and place, and --dry-run.
#include <chrono>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "headrace/base/file.h"
#include "headrace/record/recipe.h"

#include "tests/app/process.h"
#include "tests/base/temporary_folder.h"

namespace headrace::app {

namespace {

namespace fs = std::filesystem;

class TrainCommandTest : public testing::Test {
 protected:
  Outcome train(const std::string& toml, std::vector<std::string> flags = {},
                std::vector<std::string> environment = {}) {
    base::write_file(folder_ / "r.toml", toml);
    flags.insert(flags.begin(), {"train", "r.toml"});
    return run(flags, {.folder = folder_.path(), .environment = std::move(environment)});
  }

  base::TemporaryFolder folder_;
};

struct BadRecipe {
  std::string toml;
  std::string message;  // what stderr begins with
};

TEST_F(TrainCommandTest, RefusesEachBadRecipeWithItsPlace) {
  for (const BadRecipe& bad : std::vector<BadRecipe>{
           {"[training]\nstepz = 3\n", "headrace: r.toml:2:1: unknown key training.stepz"},
           {"[training]\nsteps = 'x'\n", "headrace: r.toml:2:9: training.steps = 'x'"},
           {"[training]\nsteps = -3\n", "headrace: r.toml:2:9: training.steps = -3"},
           {"[training]\nmicro_batch_size = 0\n", "headrace: r.toml:2:20: "},
           {"[optimizer]\nlr = nan\n", "headrace: r.toml:2:6: optimizer.lr = nan"},
           {"[optimizer]\nlr = 1e400\n", "headrace: r.toml:2:6: not TOML"},
           {"[training]\nsteps = 3\nsteps = 3\n", "headrace: r.toml:3:1: not TOML"},
           {"[model]\nwidth = 130\n", "headrace: r.toml:2:9: model.width = 130 is not divisible"},
           {"[parallelism]\npipeline_parallel_size = 99\n", "headrace: r.toml:2:26: "},
           {"", "headrace: r.toml:1:1: the recipe is empty"}}) {
    const Outcome outcome = train(bad.toml);
    EXPECT_EQ(outcome.code, 2) << bad.toml;
    EXPECT_EQ(outcome.err.substr(0, bad.message.size()), bad.message);
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(TrainCommandTest, TellsMistakesOfFileEnvironmentAndFlagsTogetherAndQuickly) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome =
      train("[training]\nsteps = 0\n", {"--optimizer.lr=fast", "--debug.sed", "3"},
            {"HEADRACE_MODEL__WIDTH=-1"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(outcome.code, 2);
  for (const char* piece : {"the recipe has 4 mistakes", "\n  r.toml:2:9: ",
                            "\n  environment HEADRACE_MODEL__WIDTH: ", "\n  flag --optimizer.lr: ",
                            "\n  flag --debug.sed: unknown key debug.sed; did you mean "
                            "'debug.seed'?"}) {
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << piece << "\nin: " << outcome.err;
  }
}

TEST_F(TrainCommandTest, RefusesAPathThatIsNoRecipe) {
  const ProcessOptions here{.folder = folder_.path()};
  EXPECT_EQ(run({"train", "none.toml"}, here).code, 2);
  EXPECT_EQ(run({"train", "."}, here).code, 2);
}

TEST_F(TrainCommandTest, TellsARecipeThatCannotBeReadAsBadInput) {
  // A regular file whose first byte nobody can read, root included.
  EXPECT_EQ(run({"train", "/proc/self/mem"}).code, 3);
}

TEST_F(TrainCommandTest, DryRunPrintsTheEffectiveRecipeAndThePlan) {
  const Outcome outcome = train("[training]\nglobal_batch_size = 30\n",
                                {"--dry-run", "--parallelism.pipeline_parallel_size", "2",
                                 "--training.steps=7", "--optimizer.momentum=0.5"});
  EXPECT_EQ(outcome.code, 0);
  const record::Recipe recipe = record::parse_recipe(outcome.out, "out").recipe;
  EXPECT_EQ(recipe.training.steps, 7);
  EXPECT_EQ(recipe.parallelism.pipeline_parallel_size, 2);
  EXPECT_EQ(recipe.run.name, "r");
  EXPECT_NE(outcome.out.find("# plan: 30 rows in 4 microbatches (2 of 8 rows, 2 of 7), 1F1B over "
                             "2 stages"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("#   worker 0 | F0"), std::string::npos);
  EXPECT_NE(outcome.err.find("warning: flag --optimizer.momentum"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(TrainCommandTest, DryRunPrintsOneJsonDocument) {
  const Outcome outcome = train("[training]\nglobal_batch_size = 9\nmicro_batch_size = 4\n",
                                {"--dry-run", "--json", "--optimizer.momentum=0.5"});
  EXPECT_EQ(outcome.code, 0);
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("format_version"), 1);
  EXPECT_EQ(document.at("recipe").at("training").at("global_batch_size"), 9);
  EXPECT_EQ(document.at("plan").at("microbatch_rows"), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(document.at("warnings").size(), 1U);
}

TEST_F(TrainCommandTest, HandsOverToItsSiblingWithTheSameArguments) {
  fs::copy_file(HEADRACE_PROGRAM, folder_ / "headrace");
  base::write_file(folder_ / "r.toml", "[training]\nsteps = 3\n");
  const ProcessOptions alone{.program = folder_ / "headrace", .folder = folder_.path()};
  const Outcome missing = run({"train", "r.toml"}, alone);
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("Build it with: tools/build release headrace-torch"),
            std::string::npos);
  base::write_file(folder_ / "headrace-torch", "#!/bin/sh\necho \"$@\"\nexit 5\n");
  ASSERT_EQ(::chmod((folder_ / "headrace-torch").c_str(), 0700), 0);
  const Outcome handed = run({"train", "r.toml", "--training.steps", "4"}, alone);
  EXPECT_EQ(handed.out, "train r.toml --training.steps 4\n");
  EXPECT_EQ(handed.code, 5);
  EXPECT_EQ(run({"doctor", "--json"}, alone).out, "doctor --json\n");
  EXPECT_EQ(run({"train", "r.toml", "--training.steps", "-4"}, alone).code, 2);
}

}  // namespace

}  // namespace headrace::app
