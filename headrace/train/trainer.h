// The trainer: one recipe from its first step to its last, with everything that it leaves behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "headrace/record/recipe.h"

namespace headrace::train {

/// How a run ended.
enum class End {
  kSteps,      // all steps of the recipe (or up to training.stop_at)
  kTime,       // training.max_seconds were over
  kSignal,     // asked to stop between two steps, or in the evaluation; weights saved
  kNonFinite,  // training.on_nonfinite: too many losses or gradients that were not finite
};

struct Outcome {
  End end = End::kSteps;
  std::int64_t steps = 0;
  int signal = 0;         // kSignal: which
  double first_loss = 0;  // mean over the first 20 steps that were not skipped; NaN without any
  double last_loss = 0;   // mean over the last 20
  std::string run_folder;
  std::string message;  // kNonFinite: what was seen and what to try
};

struct TrainerOptions {
  /// Takes the lines that a person at a terminal should see, without newline at the end.
  std::function<void(std::string_view)> print;
  /// A signal's number as soon as one has asked the run to stop; 0 until then. Read between steps
  /// and, in the evaluation, between batches.
  const std::atomic<int>* stop_signal = nullptr;
};

/// Trains as the recipe says: corpus read, run folder made and locked, net cut and measured, steps
/// made, weights saved, held-out pairs translated. metrics.jsonl has every step; the console one in
/// metrics.log_freq.
/// @throws base::ConfigError before the run folder is made for what cannot work; what a Pipeline
///         throws; base::IoError if the run folder cannot be written.
Outcome train(const record::Recipe& recipe, const TrainerOptions& options);

}  // namespace headrace::train
