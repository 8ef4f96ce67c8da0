#include "headrace/record/recipe.h"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/text.h"
#include "headrace/record/recipe_check.h"
#include "headrace/record/recipe_reader.h"
#include "headrace/record/recipe_toml.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = 1U << 20U;

LoadedRecipe read_all(std::string_view toml, const std::string& where,
                      const std::string& default_name, const Overrides& overrides) {
  LoadedRecipe loaded;
  Origins origins;
  Mistakes mistakes;
  const Reading reading{loaded.recipe, origins, mistakes};
  read_document(read_toml(toml, where), where, reading);
  for (const auto* settings : {&overrides.environment, &overrides.flags}) {
    for (const Setting& setting : *settings) {
      read_setting(setting, reading);
    }
  }
  if (loaded.recipe.run.name.empty()) {
    loaded.recipe.run.name = default_name;
  }
  check_together(loaded.recipe, origins, mistakes, loaded.warnings);
  mistakes.throw_if_any();
  return loaded;
}

// A name for the run made of a file name: what cannot stand in run.name becomes '_'.
std::string run_name(const fs::path& file) {
  std::string name = file.stem().string().substr(0, 100);
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                       (c == '.' && &c != name.data());
    c = plain ? c : '_';
  }
  return name.empty() ? "recipe" : name;
}

std::string neighbours(const fs::path& file) {
  constexpr int kMostLooked = 1000;
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(file.has_parent_path() ? file.parent_path() : ".", error);
  for (int looked = 0; !error && entry != fs::directory_iterator() && looked < kMostLooked;
       ++looked, entry.increment(error)) {
    if (entry->path().extension() == ".toml") {
      names.push_back(entry->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return base::did_you_mean(file.filename().string(), names);
}

}  // namespace

std::vector<Setting> environment_settings(const char* const* environment) {
  constexpr std::string_view kPrefix = "HEADRACE_";
  std::vector<Setting> settings;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equal = entry.find('=');
    const std::string_view name = entry.substr(0, equal);
    const std::size_t split = name.find("__");
    if (!name.starts_with(kPrefix) || split == std::string_view::npos ||
        equal == std::string_view::npos || split < kPrefix.size()) {
      continue;
    }
    const std::string_view section = name.substr(kPrefix.size(), split - kPrefix.size());
    settings.push_back(
        {base::lower_case(std::string(section) + "." + std::string(name.substr(split + 2))),
         std::string(entry.substr(equal + 1)), "environment " + std::string(name)});
  }
  std::sort(settings.begin(), settings.end(),
            [](const Setting& a, const Setting& b) { return a.where < b.where; });
  return settings;
}

Setting flag_setting(std::string key, std::string value) {
  std::string where = "flag --" + key;
  return {std::move(key), std::move(value), std::move(where)};
}

LoadedRecipe load_recipe(const fs::path& file, const Overrides& overrides) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  const std::string shown = base::quote(file.string(), 300);
  if (status.type() == fs::file_type::not_found) {
    throw base::ConfigError("no recipe at " + shown + ": there is no such file" + neighbours(file) +
                            " (the recipes in a folder: headrace recipes FOLDER)");
  }
  if (status.type() == fs::file_type::none) {
    throw base::IoError("cannot read the recipe " + shown + ": " + error.message() +
                        "; check the path and its permissions");
  }
  if (status.type() != fs::file_type::regular) {
    throw base::ConfigError("the recipe " + shown + " is " +
                            (fs::is_directory(status) ? "a folder" : "not a regular file") +
                            "; give the path of a .toml file");
  }
  if (const auto bytes = fs::file_size(file, error); !error && bytes > kMostBytes) {
    throw base::ConfigError("the recipe " + shown + " has " +
                            base::thousands(static_cast<std::int64_t>(bytes)) +
                            " bytes; a recipe has at most " + base::thousands(kMostBytes));
  }
  return read_all(base::read_file(file, kMostBytes), file.string(), run_name(file), overrides);
}

LoadedRecipe parse_recipe(std::string_view toml, const std::string& where,
                          const Overrides& overrides) {
  return read_all(toml, where, run_name(where), overrides);
}

std::int64_t num_microbatches(const Recipe& recipe) {
  const auto& training = recipe.training;
  return (training.global_batch_size + training.micro_batch_size - 1) / training.micro_batch_size;
}

std::vector<std::int64_t> microbatch_rows(const Recipe& recipe) {
  const std::int64_t count = num_microbatches(recipe);
  const std::int64_t rows = recipe.training.global_batch_size;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), rows / count);
  std::fill_n(sizes.begin(), rows % count, rows / count + 1);
  return sizes;
}

std::int64_t num_layers(const ModelSection& model) {
  // The embeddings of source and target in front, the output projection behind.
  constexpr std::int64_t kEmbeddingAndOutput = 2;
  return model.encoder_layers + model.decoder_layers + kEmbeddingAndOutput;
}

}  // namespace headrace::record
