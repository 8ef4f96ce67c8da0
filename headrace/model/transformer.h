// GPipe's translation Transformer: encoder and decoder layers as one sequence that carries both
// states, so that a pipeline may be cut anywhere.
// Huang et al., "GPipe", NeurIPS 2019, section 5 (T(L, H, A): L encoder and L decoder layers,
// feed-forward size H, A heads); pre-norm; feed-forward weights start scaled down by the depth.
//
//   source ids -+          +--> source ..> encoder ..> memory -----------+---------+
//               +- embed --+--> bias (of source padding, handed on) -----+--> ...  +--> head ->
//               logits
//   target ids -+          +--> target (handed on) ......> decoder ..> target -----+
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/model/layer.h"

namespace headrace::model {

/// Sizes of a translation Transformer.
struct TransformerOptions {
  std::int64_t source_vocabulary = 0;
  std::int64_t target_vocabulary = 0;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t feed_forward = 512;
  std::int64_t encoder_layers = 2;
  std::int64_t decoder_layers = 2;
  double dropout = 0;           // of embeddings, attention weights, hidden units, residual branches
  bool tied_embedding = false;  // the head's weight is the target embedding; with equal
                                // vocabularies the source embedding as well
  std::int64_t max_length = 256;  // of source and target
  std::int64_t padding = -1;      // source id that no one attends to; -1: none
};

/// @throws base::ConfigError for the first size that is out of range or does not fit, with the
/// numbers.
void check(const TransformerOptions& options);

/// Parameters of the whole model, a tied weight counted once:
/// embeddings (Vs + Vt) D, per encoder layer 4 D^2 + 2 D F + 9 D + F, per decoder layer
/// 8 D^2 + 2 D F + 15 D + F, two last norms 4 D, head Vt D + Vt.
std::int64_t count_parameters(const TransformerOptions& options);

/// The layers "embed", "encoder_<i>", "decoder_<i>", "head". The input of the sequence is
/// {source ids [N, S], target ids [N, T]} (int64), its output {logits [N, T, target_vocabulary]}.
/// Between them flow {source or memory [N, S, D], target [N, T, D], bias [N, 1, 1, S]}; a layer
/// returns what it does not change as it came. The last encoder layer ends with the encoder's norm,
/// the head begins with the decoder's.
///
/// Initial weights depend on (seed, parameter name) alone. Biases start at 0, embeddings at
/// N(0, 1/D), matrices Xavier-uniform, those of feed-forward divided by the number of all layers.
/// With tied_embedding the embed and head that are built one after the other from one list share
/// one weight tensor; building the list again makes a new one. Factories may run on any thread, one
/// build of a list at a time.
/// @throws base::ConfigError as check() does.
std::vector<LayerSpec> translation_transformer(const TransformerOptions& options,
                                               std::uint64_t seed);

}  // namespace headrace::model
