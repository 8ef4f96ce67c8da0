#include "headrace/train/translation_run.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "headrace/base/text.h"
#include "headrace/model/translation.h"
#include "headrace/train/chrf.h"

namespace headrace::train {
namespace {

std::vector<const Pair*> pointers(std::span<const Pair> pairs) {
  std::vector<const Pair*> result;
  result.reserve(pairs.size());
  for (const Pair& pair : pairs) result.push_back(&pair);
  return result;
}

}  // namespace

TranslationRun::TranslationRun(const record::Recipe& recipe,
                               const std::function<void(const std::string&)>& warn)
    : recipe_(recipe) {
  Corpus corpus =
      read_corpus({.root = recipe.data.root,
                   .max_source_bytes = static_cast<std::size_t>(recipe.data.max_source_bytes),
                   .max_target_bytes = static_cast<std::size_t>(recipe.data.max_target_bytes)},
                  warn);
  counts_ = corpus.counts;
  tokenizer_ = std::make_unique<ByteTokenizer>(std::move(corpus.languages));
  data_ = split(std::move(corpus.pairs));
  batches_ = std::make_unique<Batches>(
      data_.training, *tokenizer_,
      BatchOptions{.rows = recipe.training.global_batch_size,
                   .target_tokens = recipe.data.max_batch_target_tokens,
                   .seed = static_cast<std::uint64_t>(recipe.debug.seed)});
  const record::ModelSection& model = recipe.model;
  model_options_ = {.source_vocabulary = tokenizer_->source_vocabulary(),
                    .target_vocabulary = tokenizer_->target_vocabulary(),
                    .width = model.width,
                    .heads = model.heads,
                    .feed_forward = model.feed_forward,
                    .encoder_layers = model.encoder_layers,
                    .decoder_layers = model.decoder_layers,
                    .dropout = model.dropout,
                    .tied_embedding = model.tied_embedding,
                    .max_length = model.max_length,
                    .padding = ByteTokenizer::kPad};
  model::check(model_options_);
}

std::vector<model::LayerSpec> TranslationRun::layers() const {
  return model::translation_transformer(model_options_,
                                        static_cast<std::uint64_t>(recipe_.debug.seed));
}

std::vector<std::string> TranslationRun::translate(std::span<const model::NamedLayer> layers,
                                                   std::span<const Pair> pairs,
                                                   const std::function<bool()>& stop) const {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pairs[a].source.size() < pairs[b].source.size();
  });
  std::vector<std::string> translations(pairs.size());
  const std::size_t rows = static_cast<std::size_t>(recipe_.evaluation.batch_size);
  const model::GreedyOptions options{
      .begin = ByteTokenizer::kBegin,
      .end = ByteTokenizer::kEnd,
      .max_length = std::min(recipe_.data.max_target_bytes + 1, recipe_.model.max_length)};
  const std::vector<const Pair*> all = pointers(pairs);
  for (std::size_t first = 0; first < order.size(); first += rows) {
    if (stop && stop()) break;
    const std::size_t end = std::min(first + rows, order.size());
    std::vector<const Pair*> batch;
    for (std::size_t i = first; i < end; ++i) batch.push_back(all[order[i]]);
    const auto ids = model::greedy_decode(layers, make_source(batch, *tokenizer_), options);
    for (std::size_t i = first; i < end; ++i) {
      translations[order[i]] = tokenizer_->decode(ids[i - first]);
    }
  }
  return translations;
}

Score TranslationRun::score(std::span<const Pair> pairs,
                            std::span<const std::string> translations) {
  std::vector<std::string> references;
  std::vector<std::string> sources;
  for (const Pair& pair : pairs) {
    references.push_back(pair.target);
    sources.push_back(pair.source);
  }
  return {.pairs = pairs.size(),
          .chrf = chrf(translations, references),
          .exact = exact_match(translations, references),
          .copy_chrf = chrf(sources, references),
          .copy_exact = exact_match(sources, references)};
}

std::vector<Pair> TranslationRun::samples(std::size_t count) const {
  std::map<std::string, std::size_t> training_bytes;
  for (const Pair& pair : data_.training) training_bytes[pair.language] += pair.target.size();
  // One candidate a language: of its held-out pairs the one that sample() would take first.
  std::map<std::string, std::vector<Pair>> held_out;
  for (const Pair& pair : data_.seen) held_out[pair.language].push_back(pair);
  std::vector<std::pair<std::size_t, Pair>> candidates;
  for (auto& [language, pairs] : held_out) {
    candidates.emplace_back(training_bytes[language], sample(pairs, 1).front());
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Pair> chosen;
  count = std::min(count, candidates.size());
  for (std::size_t i = 0; i < count; ++i) {
    chosen.push_back(candidates[i * candidates.size() / count].second);
  }
  return chosen;
}

std::string to_text(const CorpusCounts& counts, const Split& data) {
  const auto number = [](std::int64_t n) { return base::thousands(n); };
  return "corpus: " + number(counts.files) + " catalogues read (" + number(counts.broken_files) +
         " damaged), " + number(counts.alias_files) + " other names of them and " +
         number(counts.english_files) + " English ones left out\n" + "        " +
         number(counts.pairs_read) + " strings; dropped: " + number(counts.dropped_empty) +
         " untranslated, " + number(counts.dropped_identical) + " identical, " +
         number(counts.dropped_repeated) + " repeated, " + number(counts.dropped_long) + " long, " +
         number(counts.dropped_not_utf8) + " not UTF-8\n        " + number(counts.kept) +
         " pairs of " + number(counts.languages) +
         " languages: " + number(static_cast<std::int64_t>(data.training.size())) +
         " to train on; held out: " + number(static_cast<std::int64_t>(data.seen.size())) +
         " whose English is seen, " + number(static_cast<std::int64_t>(data.unseen.size())) +
         " whose English is not";
}

}  // namespace headrace::train
