// The command line as data: what was asked for, parsed and checked, before anything is done.
// command_line.cpp is the only file that sees CLI11.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "headrace/record/recipe.h"

namespace headrace::app {

/// --help, --version: a text for stdout.
struct ShowText {
  std::string text;
};

/// train RECIPE.toml [--dry-run] [--json] [--section.key=value ...]
struct TrainCommand {
  std::string recipe;
  record::Overrides overrides;  // the environment and the flags
  bool dry_run = false;
  bool json = false;
};

/// doctor [--json]
struct DoctorCommand {
  bool json = false;
};

/// checkpoint diff A B [--json]
struct CheckpointDiffCommand {
  std::string a;
  std::string b;
  bool json = false;
};

/// schedule list [--json]
struct ScheduleListCommand {
  bool json = false;
};

/// schedule show NAME --workers K --microbatches M [--json]
struct ScheduleShowCommand {
  std::string name;
  int workers = 0;
  int microbatches = 0;
  bool json = false;
};

/// recipes [FOLDER] [--keys] [--json]
struct RecipesCommand {
  std::string folder;  // empty: where recipes are looked for by default
  bool keys = false;
  bool json = false;
};

using Command = std::variant<ShowText, TrainCommand, DoctorCommand, CheckpointDiffCommand,
                             ScheduleListCommand, ScheduleShowCommand, RecipesCommand>;

/// @param arguments without the program's name.
/// @param environment in the form of `environ`.
/// @throws base::ConfigError for what is not a command line: the nearest command or flag named.
Command parse_command_line(std::span<const std::string> arguments, const char* const* environment);

}  // namespace headrace::app
