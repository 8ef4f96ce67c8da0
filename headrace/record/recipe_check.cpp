#include "headrace/record/recipe_check.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <numeric>

#include "headrace/base/error.h"
#include "headrace/base/text.h"
#include "headrace/schedule/registry.h"

namespace headrace::record {

namespace {

// A schedule is a list in memory: K x M cells, each with a forward and a backward.
constexpr std::int64_t kMostCells = 500'000;
constexpr std::size_t kMostShown = 50;

std::string equals(std::string_view key, std::int64_t value) {
  return std::string(key) + " = " + std::to_string(value);
}

class Check {
 public:
  Check(const Recipe& recipe, const Origins& origins, Mistakes& mistakes,
        std::vector<std::string>& warnings)
      : r_(recipe), origins_(origins), mistakes_(mistakes), warnings_(warnings) {}

  void run() {
    heads();
    lengths();
    batch();
    pipeline();
    schedule();
    steps();
    names();
    without_effect();
  }

 private:
  void heads() {
    const auto [width, heads] = std::pair(r_.model.width, r_.model.heads);
    if (!origins_.sound({"model.width", "model.heads"}) || width % heads == 0) {
      return;
    }
    const std::int64_t below = width / heads * heads;
    mistakes_.add(origins_.place({"model.width", "model.heads"}),
                  equals("model.width", width) + " is not divisible by " +
                      equals("model.heads", heads) + " (" + std::to_string(width) + " = " +
                      std::to_string(heads) + " x " + std::to_string(width / heads) + " + " +
                      std::to_string(width % heads) + "); the nearest widths are " +
                      (below > 0 ? std::to_string(below) + " and " : "") +
                      std::to_string(below + heads));
  }

  void lengths() {
    // A source carries its language tag, a target its begin mark.
    fits("data.max_source_bytes", r_.data.max_source_bytes, "language tag");
    fits("data.max_target_bytes", r_.data.max_target_bytes, "begin mark");
  }

  void fits(std::string_view key, std::int64_t bytes, const std::string& mark) {
    if (origins_.sound({key, "model.max_length"}) && bytes + 1 > r_.model.max_length) {
      mistakes_.add(origins_.place({key, "model.max_length"}),
                    equals(key, bytes) + " bytes and a " + mark + " are " +
                        std::to_string(bytes + 1) + " tokens, more than " +
                        equals("model.max_length", r_.model.max_length));
    }
  }

  void batch() {
    const std::int64_t micro = r_.training.micro_batch_size;
    const std::int64_t global = r_.training.global_batch_size;
    if (!batch_sound() || micro <= global) {
      return;
    }
    mistakes_.add(origins_.place({"training.micro_batch_size", "training.global_batch_size"}),
                  "one microbatch has more rows than the whole batch: " +
                      equals("training.micro_batch_size", micro) + " x 1 microbatch x data 1 = " +
                      std::to_string(micro) + ", " + equals("training.global_batch_size", global) +
                      "; make the first at most the second");
  }

  void pipeline() {
    const std::int64_t workers = r_.parallelism.pipeline_parallel_size;
    const auto& cut = r_.parallelism.layers_per_stage;
    const std::int64_t layers = num_layers(r_.model);
    const bool layers_sound = origins_.sound({"model.encoder_layers", "model.decoder_layers"});
    if (!origins_.sound({"parallelism.pipeline_parallel_size"})) {
      return;
    }
    if (layers_sound && workers > layers) {
      mistakes_.add(origins_.place({"parallelism.pipeline_parallel_size", "model.encoder_layers"}),
                    equals("parallelism.pipeline_parallel_size", workers) +
                        " stages need at least " + std::to_string(workers) +
                        " layers; the model has " + layer_sum(layers));
    }
    if (cut.empty() || !origins_.sound({"parallelism.layers_per_stage"})) {
      return;
    }
    const std::string place = origins_.place({"parallelism.layers_per_stage"});
    if (static_cast<std::int64_t>(cut.size()) != workers) {
      mistakes_.add(place, "parallelism.layers_per_stage names " + std::to_string(cut.size()) +
                               " stages, " + equals("parallelism.pipeline_parallel_size", workers));
    }
    const std::int64_t sum = std::accumulate(cut.begin(), cut.end(), std::int64_t{0});
    if (layers_sound && sum != layers) {
      mistakes_.add(place, "parallelism.layers_per_stage holds " + std::to_string(sum) +
                               " layers in all; the model has " + layer_sum(layers));
    }
  }

  std::string layer_sum(std::int64_t layers) const {
    const std::int64_t others = layers - r_.model.encoder_layers - r_.model.decoder_layers;
    return std::to_string(layers) + " (encoder " + std::to_string(r_.model.encoder_layers) +
           " + decoder " + std::to_string(r_.model.decoder_layers) + " + embedding and output " +
           std::to_string(others) + ")";
  }

  void schedule() {
    if (!batch_sound() ||
        !origins_.sound({"parallelism.pipeline_parallel_size", "parallelism.pipeline_schedule"})) {
      return;
    }
    const std::int64_t workers = r_.parallelism.pipeline_parallel_size;
    const std::int64_t microbatches = num_microbatches(r_);
    if (microbatches > kMostCells / workers) {
      mistakes_.add(
          origins_.place({"training.global_batch_size", "training.micro_batch_size",
                          "parallelism.pipeline_parallel_size"}),
          std::to_string(microbatches) + " microbatches (training.global_batch_size " +
              std::to_string(r_.training.global_batch_size) + " / training.micro_batch_size " +
              std::to_string(r_.training.micro_batch_size) + ") x " + std::to_string(workers) +
              " stages = " + std::to_string(microbatches * workers) +
              " cells of a schedule; at most " + std::to_string(kMostCells) +
              ": enlarge training.micro_batch_size");
      return;
    }
    try {
      schedule::generate(r_.parallelism.pipeline_schedule,
                         {static_cast<int>(workers), static_cast<int>(microbatches), 0});
    } catch (const base::ConfigError& error) {
      mistakes_.add(
          origins_.place({"parallelism.pipeline_schedule", "parallelism.pipeline_parallel_size",
                          "training.global_batch_size"}),
          error.what());
    }
  }

  void steps() {
    const auto& training = r_.training;
    if (origins_.sound({"training.steps", "training.stop_at"}) &&
        training.stop_at > training.steps) {
      mistakes_.add(origins_.place({"training.stop_at", "training.steps"}),
                    equals("training.stop_at", training.stop_at) + " lies after " +
                        equals("training.steps", training.steps));
    }
    const auto& lr = r_.lr_scheduler;
    if (origins_.sound({"lr_scheduler.warmup_steps", "lr_scheduler.total_steps"}) &&
        lr.total_steps > 0 && lr.total_steps < lr.warmup_steps) {
      mistakes_.add(origins_.place({"lr_scheduler.total_steps", "lr_scheduler.warmup_steps"}),
                    equals("lr_scheduler.total_steps", lr.total_steps) + " lies inside " +
                        equals("lr_scheduler.warmup_steps", lr.warmup_steps));
    }
  }

  void names() {
    const std::string& name = r_.run.name;
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
    });
    if (origins_.sound({"run.name"}) && (!plain || name.starts_with('.') || name.size() > 100)) {
      mistakes_.add(origins_.place({"run.name"}),
                    "run.name = " + base::quote(name) +
                        " cannot name a folder: at most 100 letters, digits, '.', '_' and '-', "
                        "not beginning with '.'");
    }
    const std::filesystem::path inside = r_.checkpoint.folder;
    const bool leaves =
        std::any_of(inside.begin(), inside.end(), [](const auto& part) { return part == ".."; });
    if (origins_.sound({"checkpoint.folder"}) &&
        (inside.empty() || inside.is_absolute() || leaves)) {
      mistakes_.add(origins_.place({"checkpoint.folder"}),
                    "checkpoint.folder = " + base::quote(r_.checkpoint.folder) +
                        " leaves the run folder: give a name such as 'checkpoints'");
    }
  }

  void without_effect() {
    const bool adamw = r_.optimizer.name == "AdamW";
    unused(adamw, {"optimizer.momentum"}, "optimizer.name is AdamW");
    unused(!adamw, {"optimizer.beta1", "optimizer.beta2", "optimizer.eps"},
           "optimizer.name is " + r_.optimizer.name);
    unused(!r_.parallelism.layers_per_stage.empty(), {"parallelism.balance"},
           "parallelism.layers_per_stage cuts by hand");
    unused(r_.lr_scheduler.decay_type == "none",
           {"lr_scheduler.decay_ratio", "lr_scheduler.min_lr_factor", "lr_scheduler.total_steps"},
           "lr_scheduler.decay_type is none");
    unused(!r_.checkpoint.enable, {"checkpoint.folder"}, "checkpoint.enable is false");
  }

  void unused(bool applies, std::initializer_list<std::string_view> keys, const std::string& why) {
    for (const std::string_view key : keys) {
      if (applies && origins_.given(key)) {
        warnings_.push_back(origins_.place({key}) + ": " + std::string(key) +
                            " has no effect: " + why);
      }
    }
  }

  bool batch_sound() const {
    return origins_.sound({"training.micro_batch_size", "training.global_batch_size"});
  }

  const Recipe& r_;
  const Origins& origins_;
  Mistakes& mistakes_;
  std::vector<std::string>& warnings_;
};

}  // namespace

void Origins::set(std::string_view key, std::string place) {
  places_[std::string(key)] = std::move(place);
}

void Origins::mark_wrong(std::string_view key) {
  wrong_.emplace(key);
}

bool Origins::given(std::string_view key) const {
  return places_.find(key) != places_.end();
}

bool Origins::sound(std::initializer_list<std::string_view> keys) const {
  return std::none_of(keys.begin(), keys.end(),
                      [this](std::string_view key) { return wrong_.find(key) != wrong_.end(); });
}

std::string Origins::place(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (const auto found = places_.find(key); found != places_.end()) {
      return found->second;
    }
  }
  return "defaults";
}

void Mistakes::add(const std::string& place, const std::string& what) {
  lines_.push_back(place + ": " + what);
}

bool Mistakes::enough() const {
  return lines_.size() > kMostShown;
}

void Mistakes::throw_if_any() const {
  if (lines_.empty()) {
    return;
  }
  if (lines_.size() == 1) {
    throw base::ConfigError(lines_.front() + " (keys: docs/formats/recipe.md)");
  }
  std::string text = "the recipe has " + std::to_string(lines_.size()) + " mistakes:";
  for (std::size_t i = 0; i < std::min(lines_.size(), kMostShown); ++i) {
    text += "\n  " + lines_[i];
  }
  if (lines_.size() > kMostShown) {
    text += "\n  and " + std::to_string(lines_.size() - kMostShown) + " more";
  }
  throw base::ConfigError(text + "\nnothing was started; docs/formats/recipe.md lists every key");
}

void check_together(const Recipe& recipe, const Origins& origins, Mistakes& mistakes,
                    std::vector<std::string>& warnings) {
  Check(recipe, origins, mistakes, warnings).run();
}

}  // namespace headrace::record
