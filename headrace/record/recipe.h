// A recipe: everything that defines a training run, as plain values. The file is TOML; one schema
// table (recipe_schema.cpp) names every key, its type, bounds and default, and drives reading,
// flags, checks, printing and help (docs/formats/recipe.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::record {

struct RunSection {
  std::string folder;  // empty: runs/<name>-<time>
  std::string name;    // empty: the recipe's file name without its extension
  bool operator==(const RunSection&) const = default;
};

struct ModelSection {
  std::string name = "translation_transformer";
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t feed_forward = 512;
  std::int64_t encoder_layers = 2;
  std::int64_t decoder_layers = 2;
  double dropout = 0.0;
  bool tied_embedding = true;
  std::int64_t max_length = 256;
  bool operator==(const ModelSection&) const = default;
};

struct DataSection {
  std::string name = "iso_codes";
  std::string root = "/usr/share/locale";
  std::int64_t max_source_bytes = 160;
  std::int64_t max_target_bytes = 80;
  std::int64_t max_batch_target_tokens = 0;  // 0: no limit
  bool operator==(const DataSection&) const = default;
};

struct TrainingSection {
  std::int64_t steps = 1000;
  std::int64_t stop_at = 0;  // 0: at steps
  double max_seconds = 0.0;  // 0: no limit
  std::int64_t micro_batch_size = 8;
  std::int64_t global_batch_size = 64;
  double max_norm = 1.0;              // 0: no clip
  std::string on_nonfinite = "skip";  // "skip" or "stop"
  std::int64_t intra_op_threads = 1;
  bool operator==(const TrainingSection&) const = default;
};

struct ParallelismSection {
  std::int64_t pipeline_parallel_size = 1;
  std::string pipeline_schedule = "1F1B";      // a name of the schedule registry
  std::vector<std::int64_t> layers_per_stage;  // empty: cut by `balance`
  std::string balance = "measured";            // "measured" or "parameters"
  bool operator==(const ParallelismSection&) const = default;
};

struct ActivationCheckpointSection {
  std::string mode = "never";  // "never", "except_last" or "always"
  bool operator==(const ActivationCheckpointSection&) const = default;
};

struct OptimizerSection {
  std::string name = "AdamW";  // "SGD" or "AdamW"
  double lr = 1e-3;
  double weight_decay = 0.01;
  double momentum = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool operator==(const OptimizerSection&) const = default;
};

struct LrSchedulerSection {
  std::int64_t warmup_steps = 0;
  std::string decay_type = "none";
  double decay_ratio = 1.0;
  double min_lr_factor = 0.0;
  std::int64_t total_steps = 0;  // 0: training.steps
  bool operator==(const LrSchedulerSection&) const = default;
};

struct EvaluationSection {
  std::int64_t pairs = 500;
  std::int64_t samples = 10;
  std::int64_t batch_size = 32;
  bool operator==(const EvaluationSection&) const = default;
};

struct CheckpointSection {
  bool enable = true;
  std::string folder = "checkpoints";  // inside the run folder
  bool operator==(const CheckpointSection&) const = default;
};

struct MetricsSection {
  std::int64_t log_freq = 10;
  bool operator==(const MetricsSection&) const = default;
};

struct CommSection {
  double timeout_seconds = 600.0;
  bool operator==(const CommSection&) const = default;
};

struct DebugSection {
  std::int64_t seed = 0;
  bool deterministic = false;
  bool operator==(const DebugSection&) const = default;
};

/// A whole recipe; what is not in the file keeps the default above.
struct Recipe {
  RunSection run;
  ModelSection model;
  DataSection data;
  TrainingSection training;
  ParallelismSection parallelism;
  ActivationCheckpointSection activation_checkpoint;
  OptimizerSection optimizer;
  LrSchedulerSection lr_scheduler;
  EvaluationSection evaluation;
  CheckpointSection checkpoint;
  MetricsSection metrics;
  CommSection comm;
  DebugSection debug;
  bool operator==(const Recipe&) const = default;
};

/// One value given beside the file: `key` is "section.key", `value` its text.
struct Setting {
  std::string key;
  std::string value;
  std::string where;  // "flag --training.steps", "environment HEADRACE_TRAINING__STEPS"
};

/// What stands above the file: the environment, and above it the flags.
struct Overrides {
  std::vector<Setting> environment;
  std::vector<Setting> flags;
};

/// The HEADRACE_SECTION__KEY variables of `environment` (the form of `environ`, ending in nullptr).
std::vector<Setting> environment_settings(const char* const* environment);

/// The flag --key=value.
Setting flag_setting(std::string key, std::string value);

struct LoadedRecipe {
  Recipe recipe;                      // checked: every value within its bounds, all sizes fit
  std::vector<std::string> warnings;  // settings that have no effect, one sentence each
};

/// Reads and checks a recipe: file < environment < flags. At most 1 MiB is read.
/// @throws base::ConfigError with every mistake found, each with its place (file:line:column, flag
///         or variable), the value found and the values allowed. A path that names no regular file
///         is such a mistake too.
/// @throws base::IoError if the file is there but cannot be read.
LoadedRecipe load_recipe(const std::filesystem::path& file, const Overrides& overrides = {});

/// The same for a text; `where` names it in messages.
/// @throws base::ConfigError as load_recipe.
LoadedRecipe parse_recipe(std::string_view toml, const std::string& where,
                          const Overrides& overrides = {});

/// Every key with its value, as TOML that reads back equal.
std::string to_toml(const Recipe& recipe);

/// M = ceil(global_batch_size / micro_batch_size).
std::int64_t num_microbatches(const Recipe& recipe);

/// Rows of each of the M microbatches: they differ by at most one, larger first.
std::vector<std::int64_t> microbatch_rows(const Recipe& recipe);

/// Layers in the model's sequence: what a pipeline is cut from.
std::int64_t num_layers(const ModelSection& model);

}  // namespace headrace::record
