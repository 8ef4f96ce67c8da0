// The main job as data: what a translation recipe trains on, with which model, and what it is
// judged by.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/model/layer.h"
#include "headrace/model/sequence.h"
#include "headrace/model/transformer.h"
#include "headrace/record/recipe.h"
#include "headrace/train/batches.h"
#include "headrace/train/corpus.h"
#include "headrace/train/tokenizer.h"

namespace headrace::train {

/// What translations of a set of pairs are worth, beside doing nothing.
struct Score {
  std::size_t pairs = 0;
  double chrf = 0;
  double exact = 0;       // per cent
  double copy_chrf = 0;   // of handing back the source
  double copy_exact = 0;  // per cent
};

/// One translated pair.
struct Sample {
  Pair pair;
  std::string translation;
};

/// Corpus, tokenizer, batches and model of one recipe. Everything depends on the recipe and the
/// installed catalogues alone.
class TranslationRun {
 public:
  /// Reads the corpus. @param warn is told of catalogues that are damaged.
  /// @throws base::ConfigError for an empty corpus or sizes that do not fit.
  TranslationRun(const record::Recipe& recipe, const std::function<void(const std::string&)>& warn);

  const CorpusCounts& counts() const { return counts_; }
  const Split& data() const { return data_; }
  const ByteTokenizer& tokenizer() const { return *tokenizer_; }
  const model::TransformerOptions& model_options() const { return model_options_; }
  std::vector<model::LayerSpec> layers() const;

  /// The batch of update `step`, from 0.
  Batch batch(std::int64_t step) { return batches_->at(step); }
  /// A batch of about the mean size: what layers are measured on.
  Batch typical_batch() { return batches_->at(batches_->typical_step()); }

  /// Greedy translations of `pairs`, in their order. @param stop asked before each batch: once it
  /// is true, the pairs that are left get empty translations.
  std::vector<std::string> translate(std::span<const model::NamedLayer> layers,
                                     std::span<const Pair> pairs,
                                     const std::function<bool()>& stop = {}) const;
  /// @param translations one for each of `pairs`.
  static Score score(std::span<const Pair> pairs, std::span<const std::string> translations);

  /// At most `count` held-out pairs, each from another language, poor languages among them: those
  /// are spread evenly over the languages ordered by how much training text they have.
  std::vector<Pair> samples(std::size_t count) const;

 private:
  record::Recipe recipe_;
  CorpusCounts counts_;
  Split data_;
  std::unique_ptr<ByteTokenizer> tokenizer_;
  std::unique_ptr<Batches> batches_;
  model::TransformerOptions model_options_;
};

/// "read 668 catalogues (12 more are other names of them) ... " : the counts, for people.
std::string to_text(const CorpusCounts& counts, const Split& data);

}  // namespace headrace::train
