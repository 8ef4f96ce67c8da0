#include "headrace/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/log.h"
#include "headrace/base/table.h"
#include "headrace/base/text.h"
#include "headrace/base/units.h"
#include "headrace/model/layer.h"
#include "headrace/record/run_folder.h"
#include "headrace/train/checkpoint.h"
#include "headrace/train/libtorch.h"
#include "headrace/train/parallelize.h"
#include "headrace/train/progress.h"
#include "headrace/train/stage_plan.h"
#include "headrace/train/translation_run.h"

namespace headrace::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostNonFiniteInARow = 10;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// LibTorch threads of the calling thread, put back at the end.
class IntraOpThreads {
 public:
  explicit IntraOpThreads(int threads) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }
  ~IntraOpThreads() { at::set_num_threads(before_); }
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  const int before_;
};

/// One run of one recipe.
class Run {
 public:
  Run(const record::Recipe& recipe, const TrainerOptions& options)
      : recipe_(recipe),
        options_(options),
        data_(recipe, [this](const std::string& warning) { warnings_.push_back(warning); }),
        folder_(recipe, std::chrono::system_clock::now()),
        log_(base::make_log({.console = false, .file = folder_.log()})),
        sample_(data_.typical_batch()),
        pipeline_options_(pipeline_options(recipe, sample_.inputs(), log_)),
        pipeline_(data_.layers(), pipeline_options_),
        plan_(plan_of(pipeline_, pipeline_options_)),
        progress_(recipe, folder_.metrics(), [this](std::string_view line) { print(line); }) {}

  Outcome train() {
    describe();
    Outcome outcome = steps();
    outcome.first_loss = progress_.first_loss();
    outcome.last_loss = progress_.last_loss();
    outcome.run_folder = folder_.path().string();
    save(outcome.steps);
    if (outcome.end == End::kSteps || outcome.end == End::kTime) {
      account(outcome);
      evaluate();
      if (signal() != 0) end_by_signal(outcome);
    }
    return outcome;
  }

 private:
  void print(std::string_view text) {
    log_(base::LogLevel::kInfo, text);
    if (options_.print) options_.print(text);
  }

  void describe() {
    for (const std::string& warning : warnings_) log_(base::LogLevel::kWarning, warning);
    std::int64_t parameters = 0;
    for (const auto& [name, tensor] : pipeline_.named_parameters()) parameters += tensor.numel();
    print("run:    " + folder_.path().string());
    print(to_text(data_.counts(), data_.data()));
    print("model:  " + base::thousands(parameters) + " parameters in " +
          std::to_string(pipeline_.layers().size()) + " layers over " +
          std::to_string(plan_.stages.size()) + " stages, " + plan_.schedule + ", " +
          std::to_string(plan_.num_microbatches) + " microbatches, recomputation " + plan_.remat);
    print(to_text(plan_, {}, {}));
    base::write_file(folder_.plan(), to_json(plan_));
    if (pipeline_.profile()) {
      base::write_file(folder_.profile(), plan::to_json(*pipeline_.profile()));
    }
  }

  int signal() const { return options_.stop_signal != nullptr ? options_.stop_signal->load() : 0; }

  void end_by_signal(Outcome& outcome) const {
    outcome.end = End::kSignal;
    outcome.signal = signal();
  }

  /// With as many LibTorch threads as a worker has: the same translations whatever the machine.
  std::vector<std::string> translate(std::span<const Pair> pairs) const {
    const IntraOpThreads threads(static_cast<int>(recipe_.training.intra_op_threads));
    return data_.translate(pipeline_.layers(), pairs, [this] { return signal() != 0; });
  }

  std::int64_t last_step() const {
    const auto& training = recipe_.training;
    return training.stop_at > 0 ? std::min(training.stop_at, training.steps) : training.steps;
  }

  Outcome steps() {
    Outcome outcome;
    const optim::LrSchedule schedule = lr_schedule(recipe_);
    const model::Loss loss = model::cross_entropy(kIgnoreIndex);
    std::int64_t updates = 0;
    int nonfinite_in_a_row = 0;
    start_ = Clock::now();
    for (std::int64_t step = 0; step < last_step(); ++step) {
      const Batch batch = data_.batch(step);
      const double lr = schedule.at(updates);
      const runtime::StepResult result =
          pipeline_.step(batch.inputs(), batch.target_out, loss, runtime::StepOptions().lr(lr));
      outcome.steps = step + 1;
      updates += result.skipped ? 0 : 1;
      nonfinite_in_a_row = result.finite ? 0 : nonfinite_in_a_row + 1;
      progress_.step(step + 1, lr, batch.target_tokens, result, pipeline_.memory(),
                     seconds_since(start_));
      pipeline_.reset_peak();
      if (!result.finite && gives_up(nonfinite_in_a_row, result, outcome)) return outcome;
      if (signal() != 0) {
        end_by_signal(outcome);
        return outcome;
      }
      const double limit = recipe_.training.max_seconds;
      if (limit > 0 && seconds_since(start_) >= limit) {
        outcome.end = End::kTime;
        return outcome;
      }
    }
    return outcome;
  }

  bool gives_up(int nonfinite_in_a_row, const runtime::StepResult& result, Outcome& outcome) {
    const std::string what = "step " + std::to_string(outcome.steps) + ": loss " +
                             base::exact_text(result.loss) + ", gradient norm " +
                             base::exact_text(result.grad_norm) + " are not finite";
    log_(base::LogLevel::kWarning, what + "; the update is skipped");
    const bool stop = recipe_.training.on_nonfinite == "stop";
    if (!stop && nonfinite_in_a_row < kMostNonFiniteInARow) return false;
    outcome.end = End::kNonFinite;
    outcome.message = what +
                      (stop ? ", and training.on_nonfinite is \"stop\""
                            : "; these were " + std::to_string(nonfinite_in_a_row) + " in a row") +
                      ". Try a lower optimizer.lr, a longer lr_scheduler.warmup_steps or a smaller "
                      "training.max_norm";
    return true;
  }

  void save(std::int64_t step) {
    if (!recipe_.checkpoint.enable) return;
    NamedTensors tensors = pipeline_.named_parameters();
    for (auto& buffer : pipeline_.named_buffers()) tensors.push_back(std::move(buffer));
    record::Manifest manifest;
    manifest.step = step;
    manifest.seed = recipe_.debug.seed;
    manifest.libtorch_version = libtorch_running();
    for (const StagePlan& stage : plan_.stages) {
      manifest.layers_per_stage.push_back(static_cast<std::int64_t>(stage.layers.size()));
    }
    save_checkpoint(folder_.checkpoint(step), tensors, std::move(manifest));
    print("saved:  " + folder_.checkpoint(step).string());
  }

  void account(const Outcome& outcome) {
    print("trained " + base::thousands(outcome.steps) + " steps in " +
          base::duration_text(seconds_since(start_)) + "; mean loss of the first 20 steps " +
          base::fixed_text(outcome.first_loss, 4) + ", of the last 20 " +
          base::fixed_text(outcome.last_loss, 4) + " (" +
          base::fixed_text(outcome.last_loss / outcome.first_loss, 2) + " times)");
    print(to_text(plan_, progress_.mean_busy_seconds(), pipeline_.memory()));
  }

  void evaluate() {
    const auto pairs = static_cast<std::size_t>(recipe_.evaluation.pairs);
    base::Table table({"held-out pairs", "chrF", "exact %", "copying: chrF", "exact %"});
    for (const auto& [name, part] : {std::pair("English seen", &data_.data().seen),
                                     std::pair("English unseen", &data_.data().unseen)}) {
      const std::vector<Pair> chosen = sample(*part, pairs);
      if (chosen.empty()) continue;
      const auto translations = translate(chosen);
      if (signal() != 0) return;
      const Score score = TranslationRun::score(chosen, translations);
      table.add({std::to_string(score.pairs) + " " + name, base::fixed_text(score.chrf, 1),
                 base::fixed_text(score.exact, 1), base::fixed_text(score.copy_chrf, 1),
                 base::fixed_text(score.copy_exact, 1)});
    }
    if (table.num_rows() > 0) print(table.to_text());
    const std::vector<Pair> chosen =
        data_.samples(static_cast<std::size_t>(recipe_.evaluation.samples));
    if (chosen.empty()) return;
    const auto translations = translate(chosen);
    if (signal() != 0) return;
    base::Table samples({"language", "source", "translation", "reference"});
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      samples.add({chosen[i].language, chosen[i].source, translations[i], chosen[i].target});
    }
    print(samples.to_text());
  }

  const record::Recipe recipe_;
  const TrainerOptions options_;
  std::vector<std::string> warnings_;
  TranslationRun data_;
  record::RunFolder folder_;
  base::LogSink log_;
  Batch sample_;
  runtime::PipelineOptions pipeline_options_;
  runtime::Pipeline pipeline_;
  RunPlan plan_;
  ProgressLog progress_;
  Clock::time_point start_;
};

}  // namespace

Outcome train(const record::Recipe& recipe, const TrainerOptions& options) {
  return Run(recipe, options).train();
}

}  // namespace headrace::train
