// The layers of the translation Transformer. Training calls forward(); greedy decoding
// (translation.h) uses their halves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "headrace/model/attention.h"
#include "headrace/model/layer.h"
#include "headrace/model/transformer.h"

namespace torch::nn {
class LayerNormImpl;
}

namespace headrace::model {

// Shapes: N rows, S source positions, T target positions, D width, V target vocabulary.

/// Ids to states: embedding x sqrt(D) + sinusoidal positions.
class TransformerEmbed : public Layer {
 public:
  /// `target_weight` [V, D]: the embedding shared with the head; undefined: its own.
  TransformerEmbed(const TransformerOptions& options, const InitialKey& key,
                   const at::Tensor& target_weight);

  /// {source ids [N, S], target ids [N, T]} -> {source [N, S, D], target [N, T, D],
  /// bias [N, 1, 1, S]}.
  Tensors forward(Tensors inputs) override;

  /// Target ids [N, T] that stand at positions first, first + 1, ... -> [N, T, D].
  at::Tensor embed_target(const at::Tensor& ids, std::int64_t first) const;

  std::int64_t max_length() const { return options_.max_length; }

 private:
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight, std::int64_t first) const;

  TransformerOptions options_;
  at::Tensor source_;
  at::Tensor target_;
  at::Tensor positions_;  // [max_length, D]
};

/// x + dropout(W2 dropout(relu(W1 norm(x)))).
class FeedForward : public torch::nn::Module {
 public:
  FeedForward(const TransformerOptions& options, const InitialKey& key);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  double dropout_;
  std::shared_ptr<torch::nn::LayerNormImpl> norm_;
  std::shared_ptr<Projection> in_;
  std::shared_ptr<Projection> out_;
};

/// {source, target, bias} -> {source', target, bias}.
class TransformerEncoder : public Layer {
 public:
  /// `last`: ends with the encoder's final norm.
  TransformerEncoder(const TransformerOptions& options, const InitialKey& key, bool last);
  Tensors forward(Tensors inputs) override;

 private:
  double dropout_;
  std::shared_ptr<torch::nn::LayerNormImpl> norm_;
  std::shared_ptr<SelfAttention> attention_;
  std::shared_ptr<FeedForward> feed_forward_;
  std::shared_ptr<torch::nn::LayerNormImpl> last_norm_;  // null but in the last layer
};

/// {memory, target, bias} -> {memory, target', bias}.
class TransformerDecoder : public Layer {
 public:
  TransformerDecoder(const TransformerOptions& options, const InitialKey& key);
  Tensors forward(Tensors inputs) override;

  KeysValues keys_values(const at::Tensor& memory) const;
  /// An empty cache for `rows` rows of up to `length` positions.
  KeysValues make_cache(std::int64_t rows, std::int64_t length) const;
  /// target [N, 1, D], position `at`, against the cache of positions 0..at-1, which it extends.
  at::Tensor step(const at::Tensor& target, std::int64_t at, const KeysValues& cache,
                  const KeysValues& memory, const at::Tensor& bias) const;

 private:
  at::Tensor after_self(const at::Tensor& x, const KeysValues& memory,
                        const at::Tensor& bias) const;

  TransformerOptions options_;
  std::shared_ptr<torch::nn::LayerNormImpl> self_norm_;
  std::shared_ptr<SelfAttention> self_;
  std::shared_ptr<torch::nn::LayerNormImpl> cross_norm_;
  std::shared_ptr<CrossAttention> cross_;
  std::shared_ptr<FeedForward> feed_forward_;
};

/// {memory, target, bias} -> {logits [N, T, V]}.
class TransformerHead : public Layer {
 public:
  /// `weight` [V, D]: the one shared with the embedding; undefined: its own.
  TransformerHead(const TransformerOptions& options, const InitialKey& key,
                  const at::Tensor& weight);
  Tensors forward(Tensors inputs) override;

  /// target [N, T, D] -> [N, T, V].
  at::Tensor logits(const at::Tensor& target) const;

 private:
  std::shared_ptr<torch::nn::LayerNormImpl> norm_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Embedding weights [vocabulary, width] from N(0, 1/width), keyed.
at::Tensor embedding_weight(std::int64_t vocabulary, std::int64_t width, std::uint64_t seed,
                            const std::string& name);

}  // namespace headrace::model
