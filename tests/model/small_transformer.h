// A translation Transformer small enough to compute by the hundred, for several tests.
#pragma once

#include <vector>

#include <ATen/ATen.h>

#include "headrace/model/sequence.h"
#include "headrace/model/transformer.h"

namespace headrace::model {

inline constexpr std::int64_t kTestPadding = 20;

inline TransformerOptions small_options() {
  TransformerOptions options;
  options.source_vocabulary = 23;
  options.target_vocabulary = 19;
  options.width = 16;
  options.heads = 4;
  options.feed_forward = 24;
  options.encoder_layers = 2;
  options.decoder_layers = 3;
  options.max_length = 12;
  options.padding = kTestPadding;
  return options;
}

inline Tensors run(const std::vector<NamedLayer>& layers, Tensors values) {
  for (const NamedLayer& layer : layers) values = layer.call(std::move(values));
  return values;
}

inline at::Tensor logits(const std::vector<NamedLayer>& layers, const at::Tensor& source,
                         const at::Tensor& target) {
  return run(layers, {source, target})[0];
}

/// Ids [rows, length] below `vocabulary`, always the same ones.
inline at::Tensor some_ids(std::int64_t rows, std::int64_t length, std::int64_t vocabulary) {
  return at::arange(rows * length, at::kLong)
      .mul(7)
      .add(3)
      .remainder(vocabulary)
      .view({rows, length});
}

}  // namespace headrace::model
