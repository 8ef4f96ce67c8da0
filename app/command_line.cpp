#include "app/command_line.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace::app {

namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostMicrobatches = 1 << 20;

// Recipe keys are flags with a point in their name: they are taken out before the rest is parsed,
// so that each key of the schema is a flag and wrong ones are told with the recipe's mistakes.
std::vector<record::Setting> take_recipe_flags(std::vector<std::string>& arguments) {
  std::vector<record::Setting> flags;
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equal = argument.find('=');
    const std::string name = argument.substr(0, equal);
    if (!name.starts_with("--") || name.find('.') == std::string::npos) {
      rest.push_back(argument);
    } else if (equal != std::string::npos) {
      flags.push_back(record::flag_setting(name.substr(2), argument.substr(equal + 1)));
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      flags.push_back(record::flag_setting(name.substr(2), arguments[++i]));
    } else {
      throw base::ConfigError("flag " + name + " needs a value: " + name + "=VALUE");
    }
  }
  arguments = std::move(rest);
  return flags;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// The commands and what they are parsed into.
class Parser {
 public:
  Parser() : root_("Trains one neural network over many workers on LibTorch.", "headrace") {
    root_.footer(
        "Exit codes: 0 done, 1 the run failed (or diff found a difference), 2 bad usage or "
        "configuration,\n3 bad input file, 4 a peer failed, 5 stopped by non-finite numbers.\n"
        "Example: headrace train recipes/translate_iso_codes.toml --training.steps=20");
    add_train();
    add_doctor();
    add_checkpoint();
    add_schedule();
    add_recipes();
    finish(root_);
  }

  Command parse(std::vector<std::string> arguments, const char* const* environment) {
    if (arguments.empty()) {
      throw base::ConfigError("no command given; commands: " + base::join(names_of(root_)) +
                              ". Try: headrace --help");
    }
    if (arguments.front() == "train") {
      train_.overrides.flags = take_recipe_flags(arguments);
      train_.overrides.environment = record::environment_settings(environment);
    }
    check_names(root_, arguments, "headrace");
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
      root_.parse(reversed);
    } catch (const CLI::Success& asked) {  // --help or --version
      std::ostringstream text;
      root_.exit(asked, text, text);
      return ShowText{text.str()};
    } catch (const CLI::ParseError& error) {
      throw base::ConfigError(std::string(error.what()) + ". Try: " + asked_command() + " --help");
    }
    refuse_extras();
    return std::move(*chosen_);
  }

 private:
  void add_train() {
    CLI::App* train = root_.add_subcommand("train", "Train what a recipe describes");
    train->add_option("RECIPE", train_.recipe, "the recipe, a TOML file")->required();
    train->add_flag("--dry-run", train_.dry_run,
                    "print the effective recipe and the plan of microbatches, start nothing");
    train->add_flag("--json", train_.json, "print one JSON document on stdout");
    train->footer(
        "Every key of a recipe is also a flag, --section.key=value, and an environment variable,\n"
        "HEADRACE_SECTION__KEY; a flag goes before a variable, a variable before the file.\n"
        "All keys: headrace recipes --keys\n"
        "Example: headrace train recipes/translate_iso_codes.toml "
        "--parallelism.pipeline_parallel_size=4");
    train->callback([this] { chosen_ = train_; });
  }

  void add_doctor() {
    CLI::App* doctor =
        root_.add_subcommand("doctor", "Tell what works here: LibTorch, devices, data, memory");
    doctor->add_flag("--json", doctor_.json, "print one JSON document on stdout");
    doctor->footer("Example: headrace doctor");
    doctor->callback([this] { chosen_ = doctor_; });
  }

  void add_checkpoint() {
    CLI::App* checkpoint = root_.add_subcommand("checkpoint", "Look at saved weights");
    checkpoint->require_subcommand(1);
    checkpoint->footer("Example: headrace checkpoint diff runs/a runs/b");
    CLI::App* diff = checkpoint->add_subcommand(
        "diff", "Compare two checkpoints to the bit: exit code 0 if equal, 1 if not");
    diff->add_option("A", diff_.a, "a checkpoint's folder, or a run's (its newest)")->required();
    diff->add_option("B", diff_.b, "the other one")->required();
    diff->add_flag("--json", diff_.json, "print one JSON document on stdout");
    diff->footer("Example: headrace checkpoint diff runs/a runs/b/checkpoints/step-00000100");
    diff->callback([this] { chosen_ = diff_; });
  }

  void add_schedule() {
    CLI::App* schedule = root_.add_subcommand("schedule", "Look at pipeline schedules");
    schedule->require_subcommand(1);
    schedule->footer("Example: headrace schedule show 1F1B --workers 4 --microbatches 8");
    CLI::App* list = schedule->add_subcommand("list", "Name the methods");
    list->add_flag("--json", list_.json, "print one JSON document on stdout");
    list->footer("Example: headrace schedule list");
    list->callback([this] { chosen_ = list_; });
    CLI::App* show = schedule->add_subcommand("show", "Draw a schedule and what it holds");
    show->add_option("NAME", show_.name, "a name of `headrace schedule list`")->required();
    show->add_option("--workers", show_.workers, "K, number of workers")
        ->required()
        ->check(CLI::Range(1, kMostWorkers));
    show->add_option("--microbatches", show_.microbatches, "M, microbatches of one step")
        ->required()
        ->check(CLI::Range(1, kMostMicrobatches));
    show->add_flag("--json", show_.json, "print one JSON document on stdout");
    show->footer("Example: headrace schedule show GPipe --workers 2 --microbatches 4");
    show->callback([this] { chosen_ = show_; });
  }

  void add_recipes() {
    CLI::App* recipes = root_.add_subcommand("recipes", "List recipes, or the keys of a recipe");
    recipes->add_option("FOLDER", recipes_.folder, "where to look; else recipes/");
    recipes->add_flag("--keys", recipes_.keys, "every key: default, values, meaning");
    recipes->add_flag("--json", recipes_.json, "print one JSON document on stdout");
    recipes->footer("Example: headrace recipes --keys");
    recipes->callback([this] { chosen_ = recipes_; });
  }

  // What every command has. Extras are allowed here and refused by refuse_extras, with a hint.
  static void finish(CLI::App& app) {
    app.set_version_flag("--version", "headrace " HEADRACE_VERSION);
    app.allow_extras();
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
      finish(*command);
    }
  }

  static void check_names(const CLI::App& app, std::span<const std::string> arguments,
                          const std::string& path) {
    const auto names = names_of(app);
    if (names.empty() || arguments.empty() || arguments.front().starts_with('-')) {
      return;
    }
    const std::string& name = arguments.front();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw base::ConfigError("unknown command " + base::quote(name) +
                              base::did_you_mean(name, names) + " Commands of " + path + ": " +
                              base::join(names));
    }
    check_names(*app.get_subcommand(name), arguments.subspan(1), path + " " + name);
  }

  const CLI::App* deepest() const {
    const CLI::App* app = &root_;
    while (!app->get_subcommands().empty()) {
      app = app->get_subcommands().front();
    }
    return app;
  }

  std::string asked_command() const {
    std::string path;
    for (const CLI::App* app = deepest(); app != nullptr; app = app->get_parent()) {
      path = app->get_name() + (path.empty() ? "" : " ") + path;
    }
    return path;
  }

  void refuse_extras() const {
    const CLI::App* app = deepest();
    const std::vector<std::string> extras = root_.remaining(true);
    if (!extras.empty()) {
      std::vector<std::string> flags;
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) {
          flags.push_back("--" + name);
        }
      }
      const std::string name = extras.front().substr(0, extras.front().find('='));
      throw base::ConfigError("unexpected argument " + base::quote(extras.front()) +
                              base::did_you_mean(name, flags) + " Try: " + asked_command() +
                              " --help");
    }
    if (!chosen_) {
      throw base::ConfigError("no command given. Try: " + asked_command() + " --help");
    }
  }

  CLI::App root_;
  TrainCommand train_;
  DoctorCommand doctor_;
  CheckpointDiffCommand diff_;
  ScheduleListCommand list_;
  ScheduleShowCommand show_;
  RecipesCommand recipes_;
  std::optional<Command> chosen_;
};

}  // namespace

Command parse_command_line(std::span<const std::string> arguments, const char* const* environment) {
  return Parser().parse({arguments.begin(), arguments.end()}, environment);
}

}  // namespace headrace::app
