// headrace recipes: the recipes in a folder, each checked; or every key that a recipe may have.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/json.h"
#include "headrace/base/table.h"
#include "headrace/base/text.h"
#include "headrace/record/recipe.h"
#include "headrace/record/recipe_schema.h"

#include "app/commands.h"
#include "app/program.h"
#include "app/sibling.h"

namespace headrace::app {

namespace {

namespace fs = std::filesystem;

// recipes/ here, else beside or above the program (build/<preset>/bin of a checkout).
fs::path default_folder() {
  constexpr int kMostLevels = 4;
  if (fs::is_directory("recipes")) {
    return "recipes";
  }
  fs::path folder = program_folder();
  for (int level = 0; level < kMostLevels; ++level, folder = folder.parent_path()) {
    if (fs::is_directory(folder / "recipes")) {
      return folder / "recipes";
    }
  }
  throw base::ConfigError(
      "no folder recipes/ here or above the program; name one: headrace "
      "recipes FOLDER");
}

std::vector<fs::path> recipes_in(const fs::path& folder) {
  constexpr std::size_t kMost = 10'000;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  std::vector<fs::path> files;
  for (; !error && entry != fs::directory_iterator() && files.size() < kMost;
       entry.increment(error)) {
    if (entry->path().extension() == ".toml") {
      files.push_back(entry->path());
    }
  }
  if (error) {
    throw base::IoError("cannot look into '" + folder.string() + "': " + error.message() +
                        "; give a folder that holds recipes");
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The comment in the first line.
std::string description(const fs::path& file) {
  const std::string text = base::read_file(file);
  const std::string_view line = base::trim(std::string_view(text).substr(0, text.find('\n')));
  return line.starts_with('#') ? std::string(base::trim(line.substr(1))) : std::string();
}

std::string state(const fs::path& file) {
  try {
    record::load_recipe(file);
    return "ok";
  } catch (const base::Error& error) {
    return error.what();
  }
}

int list_keys(bool json) {
  if (!json) {
    std::cout << record::describe_keys();
    return kDone;
  }
  nlohmann::json keys = nlohmann::json::array();
  for (const record::Key& key : record::recipe_keys()) {
    keys.push_back({{"key", key.name},
                    {"type", record::type_name(key)},
                    {"default", record::value_text(key, {})},
                    {"allowed", key.allowed},
                    {"unit", key.unit},
                    {"meaning", key.doc}});
  }
  std::cout << base::json_text({{"format_version", 1}, {"keys", keys}});
  return kDone;
}

}  // namespace

int run_command(const RecipesCommand& command) {
  if (command.keys) {
    return list_keys(command.json);
  }
  const fs::path folder = command.folder.empty() ? default_folder() : fs::path(command.folder);
  nlohmann::json recipes = nlohmann::json::array();
  base::Table table({"recipe", "what it does", "state"});
  for (const fs::path& file : recipes_in(folder)) {
    const std::string what = description(file);
    const std::string found = state(file);
    recipes.push_back({{"recipe", file.string()}, {"what", what}, {"state", found}});
    table.add({file.string(), what, found == "ok" ? found : "has mistakes"});
  }
  std::cout << (command.json ? base::json_text({{"format_version", 1}, {"recipes", recipes}})
                             : table.to_text());
  return kDone;
}

}  // namespace headrace::app
