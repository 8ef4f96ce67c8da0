// Multi-head attention as the translation Transformer needs it: queries, keys and values projected
// together, and each half reachable on its own, so that decoding can keep what it has computed.
// Vaswani et al., "Attention Is All You Need", NIPS 2017, section 3.2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace headrace::model {

// Shapes: N rows, T queries, S keys, D width, H heads, E = D / H.

/// Where a parameter stands: initial weights are keyed by (seed, name).
struct InitialKey {
  std::uint64_t seed = 0;
  std::string name;

  InitialKey child(const std::string& part) const { return {seed, name + "." + part}; }
};

/// y = x W^T + b. W is [out, in]; b starts at 0. Draws from no global generator.
class Projection : public torch::nn::Module {
 public:
  /// Xavier-uniform weights times `gain`. With blocks > 1, W is that many matrices [out/blocks, in]
  /// side by side, and each gets the bound of its own size.
  Projection(std::int64_t in, std::int64_t out, const InitialKey& key, std::int64_t blocks = 1,
             double gain = 1.0);

  /// [..., in] -> [..., out]
  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight;
  at::Tensor bias;
};

/// Keys and values, split into heads: each [N, H, S, E].
using KeysValues = std::pair<at::Tensor, at::Tensor>;

/// What both attentions share: heads in, heads out.
struct AttentionSettings {
  std::int64_t width = 0;
  std::int64_t heads = 0;
  double dropout = 0;  // of the attention weights, in training
};

/// Attention of a sequence to itself; queries, keys and values come from one matrix product.
class SelfAttention : public torch::nn::Module {
 public:
  SelfAttention(const AttentionSettings& settings, const InitialKey& key);

  /// x [N, T, D] -> [N, T, D]. `bias` (may be undefined) is added to the scores and expands to
  /// [N, H, T, T]. With `causal`, position t sees 0..t; then `bias` must be undefined.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& bias, bool causal) const;

  /// Decoding: x [N, 1, D] is position `at`; its key and value are written into `cache`
  /// (each [N, H, L, E], L > at), then it attends to positions 0..at.
  at::Tensor step(const at::Tensor& x, std::int64_t at, const KeysValues& cache) const;

 private:
  AttentionSettings settings_;
  std::shared_ptr<Projection> qkv_;
  std::shared_ptr<Projection> out_;
};

/// Attention of one sequence to another, the memory.
class CrossAttention : public torch::nn::Module {
 public:
  CrossAttention(const AttentionSettings& settings, const InitialKey& key);

  /// memory [N, S, D] -> keys and values.
  KeysValues keys_values(const at::Tensor& memory) const;

  /// x [N, T, D] -> [N, T, D]. `bias` [N, 1, 1, S] is added to the scores (may be undefined).
  at::Tensor forward(const at::Tensor& x, const KeysValues& memory, const at::Tensor& bias) const;

 private:
  AttentionSettings settings_;
  std::shared_ptr<Projection> query_;
  std::shared_ptr<Projection> kv_;
  std::shared_ptr<Projection> out_;
};

}  // namespace headrace::model
