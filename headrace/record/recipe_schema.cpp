#include "headrace/record/recipe_schema.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

#include "headrace/base/table.h"
#include "headrace/base/text.h"
#include "headrace/schedule/registry.h"

// The address of one value of a Recipe, as a function: its return type is the key's type.
#define HEADRACE_FIELD(path) (+[](Recipe & recipe) -> auto& { return recipe.path; })

namespace headrace::record {

namespace {

std::string plain_number(double value) {
  const std::string text = base::exact_text(value);
  // 1e+06 and the like read better in full while they are short.
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : text;
}

Bounds at_least(double low) {
  return {.low = low};
}
Bounds from_to(double low, double high) {
  return {.low = low, .high = high};
}
Bounds above(double low) {
  return {.low = low, .low_open = true};
}
Bounds share_below_one() {
  return {.low = 0, .high = 1, .high_open = true};
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const schedule::Method& method : schedule::methods()) {
    names.push_back(method.name);
  }
  return names;
}

std::map<std::string, std::string, std::less<>> schedule_aliases() {
  std::map<std::string, std::string, std::less<>> aliases;
  for (const schedule::Method& method : schedule::methods()) {
    for (const std::string& alias : method.aliases) {
      aliases[base::lower_case(alias)] = method.name;
    }
  }
  return aliases;
}

std::vector<Key> run_and_model_keys() {
  return {
      {"run.folder", HEADRACE_FIELD(run.folder), "where the run writes; empty: runs/<name>-<time>",
       ""},
      {"run.name", HEADRACE_FIELD(run.name),
       "letters, digits, '.', '_' and '-'; empty: the recipe's file name", ""},
      {"model.name",
       HEADRACE_FIELD(model.name),
       "which network",
       "",
       {},
       {"translation_transformer"}},
      {"model.width", HEADRACE_FIELD(model.width), "numbers per token (model dimension)", "",
       from_to(1, 65536)},
      {"model.heads", HEADRACE_FIELD(model.heads), "attention heads; divides model.width", "",
       from_to(1, 1024)},
      {"model.feed_forward", HEADRACE_FIELD(model.feed_forward),
       "width inside the feed-forward blocks", "", from_to(1, 1'048'576)},
      {"model.encoder_layers", HEADRACE_FIELD(model.encoder_layers), "encoder layers", "",
       from_to(1, 10'000)},
      {"model.decoder_layers", HEADRACE_FIELD(model.decoder_layers), "decoder layers", "",
       from_to(1, 10'000)},
      {"model.dropout", HEADRACE_FIELD(model.dropout), "share of activations dropped", "",
       share_below_one()},
      {"model.tied_embedding", HEADRACE_FIELD(model.tied_embedding),
       "target embedding and output share one weight", ""},
      {"model.max_length", HEADRACE_FIELD(model.max_length), "longest sequence", "tokens",
       from_to(2, 1'048'576)},
      {"data.name", HEADRACE_FIELD(data.name), "which corpus", "", {}, {"iso_codes"}},
      {"data.root", HEADRACE_FIELD(data.root), "folder of the gettext catalogues", ""},
      {"data.max_source_bytes", HEADRACE_FIELD(data.max_source_bytes),
       "pairs with a longer source are left out", "bytes", from_to(1, 1'048'576)},
      {"data.max_target_bytes", HEADRACE_FIELD(data.max_target_bytes),
       "pairs with a longer target are left out", "bytes", from_to(1, 1'048'576)},
      {"data.max_batch_target_tokens", HEADRACE_FIELD(data.max_batch_target_tokens),
       "a batch of long targets has fewer rows: as many as fit, padding counted; 0: no limit",
       "tokens", from_to(0, 1'000'000'000)},
  };
}

std::vector<Key> training_keys() {
  return {
      {"training.steps", HEADRACE_FIELD(training.steps), "updates of the whole run", "steps",
       from_to(1, 1e12)},
      {"training.stop_at", HEADRACE_FIELD(training.stop_at),
       "stop after this step, schedules as for the whole run; 0: at training.steps", "steps",
       from_to(0, 1e12)},
      {"training.max_seconds", HEADRACE_FIELD(training.max_seconds),
       "stop after the step in which this time is reached; 0: no limit", "seconds",
       from_to(0, 1e9)},
      {"training.micro_batch_size", HEADRACE_FIELD(training.micro_batch_size),
       "rows of a microbatch, at most", "rows", from_to(1, 1'000'000)},
      {"training.global_batch_size", HEADRACE_FIELD(training.global_batch_size),
       "rows of one update", "rows", from_to(1, 1'000'000'000)},
      {"training.max_norm", HEADRACE_FIELD(training.max_norm),
       "clip the global gradient norm to this; 0: no clip", "", at_least(0)},
      {"training.on_nonfinite",
       HEADRACE_FIELD(training.on_nonfinite),
       "loss or gradient not finite: skip the update (10 in a row stop the run) or stop",
       "",
       {},
       {"skip", "stop"}},
      {"training.intra_op_threads", HEADRACE_FIELD(training.intra_op_threads),
       "LibTorch threads inside each worker", "threads", from_to(1, 1024)},
      {"parallelism.pipeline_parallel_size", HEADRACE_FIELD(parallelism.pipeline_parallel_size),
       "K, pipeline stages, one worker each", "", from_to(1, 1024)},
      {"parallelism.pipeline_schedule",
       HEADRACE_FIELD(parallelism.pipeline_schedule),
       "order of forwards and backwards",
       "",
       {},
       schedule_names(),
       schedule_aliases()},
      {"parallelism.layers_per_stage", HEADRACE_FIELD(parallelism.layers_per_stage),
       "the cut by hand, e.g. [3, 4]; empty: cut by parallelism.balance", "layers",
       from_to(1, 100'000)},
      {"parallelism.balance",
       HEADRACE_FIELD(parallelism.balance),
       "cut by measured seconds or by parameter count",
       "",
       {},
       {"measured", "parameters"}},
      {"activation_checkpoint.mode",
       HEADRACE_FIELD(activation_checkpoint.mode),
       "recompute activations in the backward pass: of no microbatch, of all but the last, of all",
       "",
       {},
       {"never", "except_last", "always"}},
  };
}

std::vector<Key> optimizer_keys() {
  return {
      {"optimizer.name", HEADRACE_FIELD(optimizer.name), "update rule", "", {}, {"SGD", "AdamW"}},
      {"optimizer.lr", HEADRACE_FIELD(optimizer.lr), "learning rate", "", above(0)},
      {"optimizer.weight_decay", HEADRACE_FIELD(optimizer.weight_decay), "weight decay", "",
       at_least(0)},
      {"optimizer.momentum", HEADRACE_FIELD(optimizer.momentum), "SGD", "", share_below_one()},
      {"optimizer.beta1", HEADRACE_FIELD(optimizer.beta1), "AdamW", "", share_below_one()},
      {"optimizer.beta2", HEADRACE_FIELD(optimizer.beta2), "AdamW", "", share_below_one()},
      {"optimizer.eps", HEADRACE_FIELD(optimizer.eps), "AdamW", "", above(0)},
      {"lr_scheduler.warmup_steps", HEADRACE_FIELD(lr_scheduler.warmup_steps),
       "steps of linear rise to optimizer.lr", "steps", from_to(0, 1e12)},
      {"lr_scheduler.decay_type",
       HEADRACE_FIELD(lr_scheduler.decay_type),
       "shape of the decay",
       "",
       {},
       {"none", "linear", "cosine", "inverse_sqrt"}},
      {"lr_scheduler.decay_ratio", HEADRACE_FIELD(lr_scheduler.decay_ratio),
       "share of total_steps, at its end, over which the rate decays", "", from_to(0, 1)},
      {"lr_scheduler.min_lr_factor", HEADRACE_FIELD(lr_scheduler.min_lr_factor),
       "the rate never decays below this times optimizer.lr", "", from_to(0, 1)},
      {"lr_scheduler.total_steps", HEADRACE_FIELD(lr_scheduler.total_steps),
       "where the decay ends; 0: at training.steps", "steps", from_to(0, 1e12)},
  };
}

std::vector<Key> other_keys() {
  return {
      {"evaluation.pairs", HEADRACE_FIELD(evaluation.pairs),
       "held-out pairs scored at the end; 0: none", "pairs", from_to(0, 1'000'000)},
      {"evaluation.samples", HEADRACE_FIELD(evaluation.samples),
       "sample translations shown at the end, each of another language; 0: none", "pairs",
       from_to(0, 10'000)},
      {"evaluation.batch_size", HEADRACE_FIELD(evaluation.batch_size), "pairs translated at once",
       "rows", from_to(1, 1'000'000)},
      {"checkpoint.enable", HEADRACE_FIELD(checkpoint.enable), "save the weights at the end", ""},
      {"checkpoint.folder", HEADRACE_FIELD(checkpoint.folder), "where, inside the run folder", ""},
      {"metrics.log_freq", HEADRACE_FIELD(metrics.log_freq),
       "a console line every so many steps (metrics.jsonl has all)", "steps", from_to(1, 1e12)},
      {"comm.timeout_seconds",
       HEADRACE_FIELD(comm.timeout_seconds),
       "the limit on every wait of one worker for another",
       "seconds",
       {.low = 0, .high = 1e7, .low_open = true}},
      {"debug.seed", HEADRACE_FIELD(debug.seed), "of all randomness", "", at_least(0)},
      {"debug.deterministic", HEADRACE_FIELD(debug.deterministic),
       "refuse operations whose result is not always the same", ""},
  };
}

std::string text_in_toml(const std::string& text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += {kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number_in_toml(double value) {
  const std::string text = base::exact_text(value);
  // Without a point or an exponent TOML would read an integer.
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

}  // namespace

bool Bounds::admits(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::string Bounds::text() const {
  const bool has_low = low > -std::numeric_limits<double>::infinity();
  const bool has_high = high < std::numeric_limits<double>::infinity();
  if (has_low && has_high) {
    return "in " + std::string(low_open ? "(" : "[") + plain_number(low) + ", " +
           plain_number(high) + (high_open ? ")" : "]");
  }
  if (has_low) {
    return (low_open ? "greater than " : "at least ") + plain_number(low);
  }
  return has_high ? (high_open ? "less than " : "at most ") + plain_number(high) : "any";
}

std::string_view Key::section() const {
  return std::string_view(name).substr(0, name.find('.'));
}

std::string_view Key::leaf() const {
  return std::string_view(name).substr(name.find('.') + 1);
}

const std::vector<Key>& recipe_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    for (auto part : {run_and_model_keys(), training_keys(), optimizer_keys(), other_keys()}) {
      std::move(part.begin(), part.end(), std::back_inserter(all));
    }
    return all;
  }();
  return keys;
}

const Key* find_key(std::string_view name) {
  const auto& keys = recipe_keys();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string type_name(const Key& key) {
  constexpr std::string_view kNames[] = {"true or false", "an integer", "a number", "text",
                                         "a list of integers"};
  return std::string(kNames[key.field.index()]);
}

std::string value_text(const Key& key, const Recipe& recipe) {
  // Fields hand out references for reading recipes into; nothing is written through this one.
  Recipe copy = recipe;
  return std::visit(
      [&copy](auto field) -> std::string {
        const auto& value = field(copy);
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          return std::to_string(value);
        } else if constexpr (std::is_same_v<Value, double>) {
          return number_in_toml(value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return text_in_toml(value);
        } else {
          std::vector<std::string> parts;
          for (const std::int64_t number : value) {
            parts.push_back(std::to_string(number));
          }
          return std::string("[").append(base::join(parts)).append("]");
        }
      },
      key.field);
}

std::string describe_keys() {
  base::Table table({"key", "default", "values", "unit", "meaning"});
  const Recipe defaults;
  for (const Key& key : recipe_keys()) {
    std::string values = key.allowed.empty() ? type_name(key) : base::join(key.allowed, " | ");
    if (std::isfinite(key.bounds.low) || std::isfinite(key.bounds.high)) {
      values.append(" ").append(key.bounds.text());
    }
    table.add({key.name, value_text(key, defaults), values, key.unit, key.doc});
  }
  return table.to_text();
}

std::string to_toml(const Recipe& recipe) {
  std::string text;
  std::string_view section;
  for (const Key& key : recipe_keys()) {
    if (key.section() != section) {
      section = key.section();
      text += (text.empty() ? "[" : "\n[") + std::string(section) + "]\n";
    }
    text += std::string(key.leaf()) + " = " + value_text(key, recipe) + "\n";
  }
  return text;
}

}  // namespace headrace::record
