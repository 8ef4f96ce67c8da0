// Batches of sentence pairs of similar length: what the trainer feeds to the pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/train/corpus.h"
#include "headrace/train/tokenizer.h"

namespace headrace::train {

/// Target ids that a loss must leave out (model::cross_entropy's default ignore_index).
inline constexpr std::int64_t kIgnoreIndex = -100;

/// N pairs; all int64. Every row is padded to the longest of the batch, so that the batch can be
/// cut along rows into microbatches.
struct Batch {
  at::Tensor source;               // [N, S]: tag and bytes, then kPad
  at::Tensor target_in;            // [N, T]: begin and bytes, then kPad
  at::Tensor target_out;           // [N, T]: bytes and end, then kIgnoreIndex
  std::int64_t target_tokens = 0;  // of target_out that count
  std::int64_t target_bytes = 0;   // of English text

  std::int64_t rows() const { return target_out.size(0); }
  /// What the first layer of the translation Transformer takes.
  std::vector<at::Tensor> inputs() const { return {source, target_in}; }
};

/// The pairs in the order given, as one batch. An empty list gives a batch without rows.
Batch make_batch(std::span<const Pair* const> pairs, const ByteTokenizer& tokenizer);

/// The sources alone, padded: [N, S] int64.
at::Tensor make_source(std::span<const Pair* const> pairs, const ByteTokenizer& tokenizer);

struct BatchOptions {
  std::int64_t rows = 64;             // of each batch at most, all but the last one of a chunk
  std::int64_t target_tokens = 0;     // > 0: at most as many rows as fit, padding and end included
  std::int64_t chunk_batches = 1024;  // how many batches' pairs are sorted by length together
  std::uint64_t seed = 0;
};

/// The endless sequence of training batches. Each epoch holds every pair exactly once, in an order
/// of its own: pairs are shuffled; chunks of them sorted by target length into strips, and strips
/// by source length; chunks cut into batches, and the batches shuffled. Batch `step` is a function
/// of (pairs, options, step) alone: a run that is resumed goes on with the batch that was next, and
/// no layout changes what is read. Thread rule: one caller at a time.
class Batches {
 public:
  /// `pairs` and `tokenizer` are lent and must outlive this object.
  /// @throws base::ConfigError for no pairs, or sizes below 1.
  Batches(std::span<const Pair> pairs, const ByteTokenizer& tokenizer, BatchOptions options);

  /// Batch of update `step`, counted from 0.
  /// Cost: planning an epoch of 180,000 pairs takes under 0.25 s; a step far ahead plans the
  /// epochs before it once when they differ in length (target_tokens only).
  Batch at(std::int64_t step);

  /// The indices into `pairs` of each batch of an epoch.
  std::vector<std::vector<std::uint32_t>> plan(std::int64_t epoch) const;

  /// The step of the first epoch whose batch comes nearest to the mean padded size.
  std::int64_t typical_step();

  /// Epoch that `step` lies in.
  std::int64_t epoch_of(std::int64_t step);

 private:
  void seek(std::int64_t step);
  /// Rows of a batch; with a token budget, of one of average length.
  std::uint64_t typical_rows() const;
  /// Orders one chunk so that neighbours are alike in target and source length.
  void sort_chunk(std::span<std::uint32_t> chunk, std::uint64_t rows) const;

  std::span<const Pair> pairs_;
  const ByteTokenizer* tokenizer_;
  BatchOptions options_;
  std::vector<std::uint64_t> lengths_;  // target length in the high half, source in the low one
  std::int64_t epoch_ = -1;             // the planned one
  std::int64_t first_step_ = 0;         // of the planned epoch
  std::vector<std::vector<std::uint32_t>> planned_;
};

}  // namespace headrace::train
