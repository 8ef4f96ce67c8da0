// headrace train: the recipe is checked here, without LibTorch; the training is headrace-torch's.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "headrace/base/json.h"
#include "headrace/record/recipe_schema.h"
#include "headrace/schedule/passes.h"
#include "headrace/schedule/registry.h"
#include "headrace/schedule/text.h"
#include "headrace/schedule/validate.h"

#include "app/commands.h"
#include "app/program.h"
#include "app/sibling.h"

namespace headrace::app {

namespace {

constexpr std::int64_t kMostDrawnCells = 2048;

struct Plan {
  std::vector<std::int64_t> rows;
  schedule::Schedule list;
  schedule::Proof proof;
};

Plan plan_of(const record::Recipe& recipe) {
  Plan plan;
  plan.rows = record::microbatch_rows(recipe);
  plan.list = schedule::add_remat(
      schedule::generate(recipe.parallelism.pipeline_schedule,
                         {static_cast<int>(recipe.parallelism.pipeline_parallel_size),
                          static_cast<int>(plan.rows.size()), 0}),
      schedule::remat_from_text(recipe.activation_checkpoint.mode));
  plan.proof = schedule::validate(plan.list);
  return plan;
}

std::string rows_text(const std::vector<std::int64_t>& rows) {
  const auto larger = std::count(rows.begin(), rows.end(), rows.front());
  const auto smaller = static_cast<std::ptrdiff_t>(rows.size()) - larger;
  std::string text = std::to_string(larger) + " of " + std::to_string(rows.front()) + " rows";
  if (smaller > 0) {
    text += ", " + std::to_string(smaller) + " of " + std::to_string(rows.back());
  }
  return text;
}

// Comments, so that the whole output is a recipe.
std::string commented(const std::string& text) {
  std::string out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += "#   " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out;
}

std::string plan_text(const record::Recipe& recipe, const Plan& plan) {
  const auto stages = recipe.parallelism.pipeline_parallel_size;
  std::string text = "# plan: " + std::to_string(recipe.training.global_batch_size) + " rows in " +
                     std::to_string(plan.rows.size()) + " microbatches (" + rows_text(plan.rows) +
                     "), " + plan.list.name + " over " + std::to_string(stages) +
                     " stages, the model's " + std::to_string(record::num_layers(recipe.model)) +
                     " layers\n";
  text += "# most microbatches held by each worker:";
  for (const int live : plan.proof.live_activations) {
    text += ' ';
    text += std::to_string(live);
  }
  text += "\n";
  if (stages * static_cast<std::int64_t>(plan.rows.size()) <= kMostDrawnCells) {
    text += commented(schedule::draw(plan.list));
  }
  return text;
}

nlohmann::json recipe_json(record::Recipe recipe) {
  nlohmann::json sections = nlohmann::json::object();
  for (const record::Key& key : record::recipe_keys()) {
    sections[std::string(key.section())][std::string(key.leaf())] =
        std::visit([&recipe](auto field) { return nlohmann::json(field(recipe)); }, key.field);
  }
  return sections;
}

std::string json_of(const record::LoadedRecipe& loaded, const Plan& plan) {
  return base::json_text({{"format_version", 1},
                          {"recipe", recipe_json(loaded.recipe)},
                          {"warnings", loaded.warnings},
                          {"plan",
                           {{"microbatch_rows", plan.rows},
                            {"schedule", plan.list.name},
                            {"num_stages", plan.list.num_stages},
                            {"num_layers", record::num_layers(loaded.recipe.model)},
                            {"live_activations_by_worker", plan.proof.live_activations}}}});
}

}  // namespace

int run_command(const TrainCommand& command, char** argv) {
  const record::LoadedRecipe loaded = record::load_recipe(command.recipe, command.overrides);
  if (!command.dry_run) {
    become_sibling(argv);
  }
  for (const std::string& warning : loaded.warnings) {
    std::cerr << "headrace: warning: " << warning << '\n';
  }
  const Plan plan = plan_of(loaded.recipe);
  if (command.json) {
    std::cout << json_of(loaded, plan);
  } else {
    std::cout << record::to_toml(loaded.recipe) << '\n' << plan_text(loaded.recipe, plan);
  }
  return kDone;
}

}  // namespace headrace::app
