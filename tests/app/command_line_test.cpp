// Commands, flags, help and exit codes, asked of the program itself.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/base/file.h"

#include "tests/app/process.h"
#include "tests/base/temporary_folder.h"

namespace headrace::app {

namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

AssertionResult has(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos ? AssertionSuccess()
                                               : AssertionFailure() << piece << " not in: " << text;
}

using Arguments = std::vector<std::string>;

TEST(CommandLine, EveryCommandHasHelpWithAnExampleAndAVersion) {
  for (const Arguments& command : {Arguments{},
                                   {"train"},
                                   {"doctor"},
                                   {"checkpoint"},
                                   {"checkpoint", "diff"},
                                   {"schedule"},
                                   {"schedule", "list"},
                                   {"schedule", "show"},
                                   {"recipes"}}) {
    Arguments help = command;
    help.emplace_back("--help");
    const Outcome outcome = run(help);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(has(outcome.out, "Usage: headrace"));
    EXPECT_TRUE(has(outcome.out, "Example: headrace "));
    EXPECT_EQ(outcome.err, "");
    Arguments version = command;
    version.emplace_back("--version");
    EXPECT_EQ(run(version).out, "headrace 0.1.0\n");
  }
}

struct BadUsage {
  Arguments arguments;
  std::string message;
};

TEST(CommandLine, BadUsageIsExitCodeTwoWithTheNearestName) {
  for (const BadUsage& bad : std::vector<BadUsage>{
           {{}, "no command given; commands: train, doctor"},
           {{"trian"}, "unknown command 'trian'; did you mean 'train'?"},
           {{"schedule", "lst"}, "unknown command 'lst'; did you mean 'list'?"},
           {{"schedule"}, "headrace schedule --help"},
           {{"checkpoint", "diff", "--jsn", "a", "b"}, "did you mean '--json'?"},
           {{"checkpoint", "diff", "a"}, "B is required"},
           {{"checkpoint", "diff", "a", "b", "c"}, "unexpected argument 'c'"},
           {{"--verson"}, "did you mean '--version'?"},
           {{"train"}, "RECIPE is required"},
           {{"train", "r.toml", "--dryrun"}, "did you mean '--dry-run'?"},
           {{"train", "r.toml", "--training.steps"}, "flag --training.steps needs a value"},
           {{"schedule", "show", "1F1B", "--workers", "0", "--microbatches", "1"}, "--workers"},
           {{"schedule", "show", "1F1B", "--workers", "x", "--microbatches", "1"}, "--workers"},
           {{"schedule", "show", "1F1B", "--workers", "2"}, "--microbatches is required"},
           {{"schedule", "show", "2F2B", "--workers", "2", "--microbatches", "1"},
            "unknown schedule '2F2B'"},
           {{"schedule", "show", "1F1B", "--workers", "1024", "--microbatches", "1000000"},
            "= 1024000000 cells"}}) {
    const Outcome outcome = run(bad.arguments);
    EXPECT_EQ(outcome.code, 2) << bad.message;
    EXPECT_EQ(outcome.err.substr(0, 10), "headrace: ");
    EXPECT_TRUE(has(outcome.err, bad.message));
    EXPECT_EQ(outcome.out, "") << bad.message;
  }
}

TEST(CommandLine, StandardOutputThatIsFullIsAFailure) {
  const Outcome outcome =
      run({"-c", "exec " HEADRACE_PROGRAM " recipes --keys > /dev/full"}, {.program = "/bin/sh"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "could not write to standard output"));
}

TEST(Recipes, ListsWhatIsInAFolderAndWhetherItIsRight) {
  const base::TemporaryFolder folder;
  base::write_file(folder / "good.toml", "# Does this.\n[run]\n");
  base::write_file(folder / "wrong.toml", "[training]\nsteps = 0\n");
  base::write_file(folder / "other.txt", "");
  const Outcome text = run({"recipes", folder.path().string()});
  EXPECT_EQ(text.code, 0);
  EXPECT_TRUE(has(text.out, "good.toml   Does this.    ok\n"));
  EXPECT_TRUE(has(text.out, "has mistakes"));
  const auto document =
      nlohmann::json::parse(run({"recipes", folder.path().string(), "--json"}).out);
  EXPECT_EQ(document.at("format_version"), 1);
  ASSERT_EQ(document.at("recipes").size(), 2U);
  EXPECT_EQ(document.at("recipes").at(0).at("state"), "ok");
  EXPECT_TRUE(has(document.at("recipes").at(1).at("state"), ":2:9: training.steps = 0"));
}

TEST(Recipes, AreFoundAboveTheProgram) {
  const base::TemporaryFolder elsewhere;
  const Outcome outcome = run({"recipes"}, {.folder = elsewhere.path()});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.out, "translate_iso_codes.toml"));
}

TEST(Recipes, OfAFolderThatIsNotThereAreBadInput) {
  EXPECT_EQ(run({"recipes", "/no/such/folder"}).code, 3);
}

TEST(Recipes, TellsEveryKey) {
  EXPECT_TRUE(has(run({"recipes", "--keys"}).out, "training.global_batch_size"));
  const auto document = nlohmann::json::parse(run({"recipes", "--keys", "--json"}).out);
  EXPECT_EQ(document.at("keys").at(0).at("key"), "run.folder");
}

}  // namespace

}  // namespace headrace::app
