#include "headrace/record/run_folder.h"

#include <csignal>
#include <utility>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;

const auto kNow = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));

Recipe recipe_in(const fs::path& folder) {
  Recipe recipe;
  recipe.run.name = "r";
  recipe.run.folder = folder.string();
  return recipe;
}

// Works in another folder for as long as it lives.
class Inside {
 public:
  explicit Inside(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  ~Inside() { fs::current_path(before_); }

 private:
  fs::path before_;
};

TEST(RunFolder, KeepsTheEffectiveRecipe) {
  const base::TemporaryFolder parent;
  const Recipe recipe = recipe_in(parent / "a/b");
  const RunFolder folder(recipe, kNow);
  EXPECT_EQ(folder.path(), parent / "a/b");
  EXPECT_EQ(load_recipe(folder.config()).recipe, recipe);
}

TEST(RunFolder, IsNamedAfterRecipeAndTimeAndNeverTaken) {
  const base::TemporaryFolder parent;
  const Inside inside(parent.path());
  const Recipe recipe = recipe_in("");
  const RunFolder first(recipe, kNow);
  const RunFolder second(recipe, kNow);
  const std::string name = first.path().string();
  EXPECT_EQ(name.substr(0, 7), "runs/r-");
  EXPECT_EQ(name.size(), std::string("runs/r-20231114-221320").size());
  EXPECT_EQ(second.path().string(), name + "-2");
}

TEST(RunFolder, InUseIsRefusedNamingTheProcess) {
  const base::TemporaryFolder parent;
  const RunFolder folder(recipe_in(parent / "run"), kNow);
  const std::string message = base::message_of<base::ConfigError>(
      [&] { const RunFolder again(recipe_in(parent / "run"), kNow); });
  EXPECT_NE(message.find("in use by process " + std::to_string(::getpid())), std::string::npos)
      << message;
}

TEST(RunFolder, OfAnEarlierRunIsRefused) {
  const base::TemporaryFolder parent;
  { const RunFolder folder(recipe_in(parent / "run"), kNow); }
  const std::string message = base::message_of<base::ConfigError>(
      [&] { const RunFolder again(recipe_in(parent / "run"), kNow); });
  EXPECT_NE(message.find("already holds a run"), std::string::npos);
}

TEST(RunFolder, IsFreeAgainWhenItsProcessWasKilled) {
  const base::TemporaryFolder parent;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder folder(recipe_in(parent / "run"), kNow);
    ::unlink(folder.config().c_str());
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_NO_THROW({ const RunFolder folder(recipe_in(parent / "run"), kNow); });
}

TEST(RunFolder, ThatCannotBeMadeIsBadInput) {
  const base::TemporaryFolder parent;
  base::write_file(parent / "file", "x");
  EXPECT_THROW(RunFolder(recipe_in(parent / "file"), kNow), base::IoError);
  EXPECT_THROW(RunFolder(recipe_in(parent / "file/below"), kNow), base::IoError);
}

TEST(RunFolder, MovesItsLock) {
  const base::TemporaryFolder parent;
  RunFolder folder(recipe_in(parent / "run"), kNow);
  const RunFolder moved = std::move(folder);
  EXPECT_EQ(moved.path(), parent / "run");
  EXPECT_THROW(RunFolder(recipe_in(parent / "run"), kNow), base::ConfigError);
}

TEST(RunFolder, NamesCheckpointsByStep) {
  const base::TemporaryFolder parent;
  const RunFolder folder(recipe_in(parent / "run"), kNow);
  EXPECT_EQ(folder.checkpoint(100), parent / "run/checkpoints/step-00000100");
  EXPECT_EQ(checkpoint_name(1'234'567'890), "step-1234567890");
  EXPECT_EQ(step_of_checkpoint("step-00000100"), 100);
  EXPECT_EQ(step_of_checkpoint("step-1234567890"), 1'234'567'890);
  for (const char* name : {"step-100", "step-0000010x", "step-", "Step-00000100", "step--0000001",
                           "step-99999999999999999999"}) {
    EXPECT_EQ(step_of_checkpoint(name), std::nullopt) << name;
  }
}

}  // namespace

}  // namespace headrace::record
