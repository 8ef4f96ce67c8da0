// Random changes of a good recipe: read or refused with a ConfigError, never anything else.
#include <random>

#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/record/recipe.h"

namespace headrace::record {

namespace {

std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  constexpr std::string_view kPieces[] = {"[", "]",     "\n",  "=",  "\"",  "'",  ".",
                                          "-", "1e400", "nan", "{",  "}",   "#",  "\\",
                                          ",", "0x",    "_",   "[[", "'''", "inf"};
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = below(text.size());
    const std::size_t length = std::min(text.size() - at, 1 + below(8));
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(below(text.size()), text.substr(at, 10 * length));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(RecipeMutations, AreReadOrRefused) {
  constexpr int kRounds = 4000;
  std::mt19937 random(20);
  const std::string good = to_toml(Recipe{});
  int read = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = mutated(good, random);
    try {
      const Recipe recipe = parse_recipe(text, "r.toml").recipe;
      ASSERT_EQ(parse_recipe(to_toml(recipe), "r.toml").recipe, recipe) << text;
      ++read;
    } catch (const base::ConfigError& error) {
      ASSERT_NE(std::string(error.what()).find("r.toml:"), std::string::npos) << text;
    }
  }
  // Both ways must have been taken, else the test tests nothing.
  EXPECT_GT(read, kRounds / 50);
  EXPECT_LT(read, kRounds);
}

TEST(RecipeMutations, OfFlagValuesAreReadOrRefused) {
  std::mt19937 random(21);
  for (int i = 0; i < 2000; ++i) {
    Overrides overrides;
    overrides.flags = {flag_setting("parallelism.layers_per_stage", mutated("[3, 3]", random)),
                       flag_setting("optimizer.lr", mutated("1e-3", random)),
                       flag_setting(mutated("training.steps", random), "3")};
    try {
      (void)parse_recipe("[run]\n", "r.toml", overrides);
    } catch (const base::ConfigError& error) {
      ASSERT_NE(std::string(error.what()).find("flag --"), std::string::npos);
    }
  }
}

}  // namespace

}  // namespace headrace::record
