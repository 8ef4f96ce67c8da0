#include "headrace/record/recipe.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "headrace/base/file.h"
#include "headrace/record/recipe_schema.h"

#include "tests/base/message_of.h"

namespace headrace::record {

namespace {

Recipe recipe_of(std::string_view toml, const Overrides& overrides = {}) {
  return parse_recipe(toml, "r.toml", overrides).recipe;
}

Overrides flags(std::vector<std::pair<std::string, std::string>> given) {
  Overrides overrides;
  for (auto& [key, value] : given) {
    overrides.flags.push_back(flag_setting(key, value));
  }
  return overrides;
}

TEST(Recipe, KeepsDefaultsWhereTheFileSaysNothing) {
  Recipe expected;
  expected.run.name = "r";
  expected.training.steps = 7;
  EXPECT_EQ(recipe_of("[training]\nsteps = 7\n"), expected);
}

TEST(Recipe, TakesAFlagBeforeTheEnvironmentAndThatBeforeTheFile) {
  const char* environment[] = {"PATH=/bin", "HEADRACE_TRAINING__STEPS=20",
                               "HEADRACE_OPTIMIZER__LR=0.5", "HEADRACE_ROOT=/x", nullptr};
  Overrides overrides = flags({{"training.steps", "30"}});
  overrides.environment = environment_settings(environment);
  const Recipe recipe =
      recipe_of("[training]\nsteps = 10\nstop_at = 5\n[optimizer]\nlr = 0.1\n", overrides);
  EXPECT_EQ(recipe.training.steps, 30);
  EXPECT_EQ(recipe.optimizer.lr, 0.5);
  EXPECT_EQ(recipe.training.stop_at, 5);
}

TEST(Recipe, TakesTheLastOfTwoEqualFlags) {
  EXPECT_EQ(recipe_of("[run]\n", flags({{"debug.seed", "1"}, {"debug.seed", "2"}})).debug.seed, 2);
}

TEST(Recipe, ReadsEveryWayThatTomlWritesAValue) {
  const Recipe recipe = recipe_of(
      "training.steps = 1_000\n"
      "debug = {seed = 0xff, deterministic = true}\n"
      "[optimizer]\nlr = 1\nweight_decay = +1e-2\n"
      "[parallelism]\npipeline_parallel_size = 2\nlayers_per_stage = [3,\n 3]  # by hand\n"
      "[data]\nroot = '/a\\b'\n");
  EXPECT_EQ(recipe.training.steps, 1000);
  EXPECT_EQ(recipe.debug.seed, 255);
  EXPECT_TRUE(recipe.debug.deterministic);
  EXPECT_EQ(recipe.optimizer.lr, 1.0);
  EXPECT_EQ(recipe.optimizer.weight_decay, 0.01);
  EXPECT_EQ(recipe.parallelism.layers_per_stage, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(recipe.data.root, "/a\\b");
}

TEST(Recipe, ReadsFlagsOfEveryType) {
  const Recipe recipe = recipe_of("[run]\n", flags({{"training.steps", "0x10"},
                                                    {"optimizer.lr", "3"},
                                                    {"model.tied_embedding", "false"},
                                                    {"data.root", "a = 'b' # c"},
                                                    {"parallelism.pipeline_parallel_size", "2"},
                                                    {"parallelism.layers_per_stage", "2, 4"}}));
  EXPECT_EQ(recipe.training.steps, 16);
  EXPECT_EQ(recipe.optimizer.lr, 3.0);
  EXPECT_FALSE(recipe.model.tied_embedding);
  EXPECT_EQ(recipe.data.root, "a = 'b' # c");
  EXPECT_EQ(recipe.parallelism.layers_per_stage, (std::vector<std::int64_t>{2, 4}));
}

TEST(Recipe, ReadsNamesInAnyCaseAndKeepsTheUsualOne) {
  const Recipe recipe = recipe_of(
      "[optimizer]\nname = 'sgd'\n[parallelism]\npipeline_schedule = 'gpipe'\n"
      "[activation_checkpoint]\nmode = 'ALWAYS'\n");
  EXPECT_EQ(recipe.optimizer.name, "SGD");
  EXPECT_EQ(recipe.parallelism.pipeline_schedule, "GPipe");
  EXPECT_EQ(recipe.activation_checkpoint.mode, "always");
  EXPECT_EQ(recipe_of("[parallelism]\npipeline_schedule = 'pipedream-flush'\n")
                .parallelism.pipeline_schedule,
            "1F1B");
}

TEST(Recipe, AcceptsAByteOrderMarkAndWindowsLineEnds) {
  EXPECT_EQ(recipe_of("\xEF\xBB\xBF[training]\r\nsteps = 3\r\n").training.steps, 3);
}

TEST(Recipe, AcceptsABatchThatMicrobatchesDoNotDivide) {
  const Recipe recipe = recipe_of("[training]\nglobal_batch_size = 30\nmicro_batch_size = 8\n");
  EXPECT_EQ(num_microbatches(recipe), 4);
  EXPECT_EQ(microbatch_rows(recipe), (std::vector<std::int64_t>{8, 8, 7, 7}));
}

TEST(Recipe, SplitsRowsEvenlyWithTheLargerFirst) {
  const Recipe recipe = recipe_of("[training]\nglobal_batch_size = 9\nmicro_batch_size = 4\n");
  EXPECT_EQ(microbatch_rows(recipe), (std::vector<std::int64_t>{3, 3, 3}));
}

TEST(Recipe, WarnsAboutSettingsWithoutEffect) {
  const LoadedRecipe loaded = parse_recipe(
      "[optimizer]\nmomentum = 0.9\n[lr_scheduler]\nmin_lr_factor = 0.1\n", "r.toml", {});
  ASSERT_EQ(loaded.warnings.size(), 2U);
  EXPECT_EQ(loaded.warnings[0],
            "r.toml:2:12: optimizer.momentum has no effect: optimizer.name is AdamW");
  EXPECT_EQ(loaded.warnings[1],
            "r.toml:4:17: lr_scheduler.min_lr_factor has no effect: lr_scheduler.decay_type is "
            "none");
  EXPECT_TRUE(
      parse_recipe("[optimizer]\nname = 'SGD'\nmomentum = 0.9\n", "r", {}).warnings.empty());
}

TEST(Recipe, ReadsItsOwnPrintBackEqual) {
  Recipe recipe;
  recipe.run.name = "a-b.c";
  recipe.data.root = "quotes \" \\ and \xC3\xA9";
  recipe.optimizer.lr = 0.1 + 0.2;
  recipe.optimizer.eps = 5e-324;
  recipe.training.max_norm = 1.7976931348623157e308;
  recipe.parallelism.pipeline_parallel_size = 2;
  recipe.parallelism.layers_per_stage = {1, 5};
  recipe.debug.seed = INT64_MAX;
  EXPECT_EQ(recipe_of(to_toml(recipe)), recipe);
}

TEST(Recipe, PrintsNumbersThatReadBackToTheSameBits) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    Recipe recipe;
    recipe.run.name = "r";
    recipe.optimizer.lr = std::ldexp(std::uniform_real_distribution<>(1, 2)(random),
                                     static_cast<int>(random() % 2000) - 1000);
    ASSERT_EQ(recipe_of(to_toml(recipe)).optimizer.lr, recipe.optimizer.lr);
  }
}

TEST(Recipe, DocumentsEveryKey) {
  const std::string page =
      base::read_file(std::string(HEADRACE_SOURCE) + "/docs/formats/recipe.md");
  for (const Key& key : recipe_keys()) {
    EXPECT_NE(page.find("| `" + key.name + "` | `" + value_text(key, {}) + "` |"),
              std::string::npos)
        << key.name;
    EXPECT_FALSE(key.doc.empty()) << key.name;
  }
}

TEST(Recipe, ShipsOnlyRecipesThatAreRight) {
  int found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(HEADRACE_SOURCE) + "/recipes")) {
    if (entry.path().extension() == ".toml") {
      const LoadedRecipe loaded = load_recipe(entry.path());
      EXPECT_TRUE(loaded.warnings.empty()) << entry.path();
      ++found;
    }
  }
  EXPECT_GE(found, 1);
}

}  // namespace

}  // namespace headrace::record
