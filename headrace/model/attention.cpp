#include "headrace/model/attention.h"

#include <cmath>
#include <optional>
#include <vector>

#include <ATen/ATen.h>

#include "headrace/model/keyed_init.h"

namespace headrace::model {
namespace {

/// [N, T, D] -> [N, H, T, E], without a copy.
at::Tensor split_heads(const at::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

/// [N, H, T, E] -> [N, T, D], without a copy if the kernel wrote the heads side by side.
at::Tensor join_heads(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

at::Tensor attend(const AttentionSettings& settings, bool training, const at::Tensor& query,
                  const KeysValues& memory, const at::Tensor& bias, bool causal) {
  const std::optional<at::Tensor> mask = bias.defined() ? std::optional(bias) : std::nullopt;
  return join_heads(at::scaled_dot_product_attention(query, memory.first, memory.second, mask,
                                                     training ? settings.dropout : 0.0, causal));
}

}  // namespace

Projection::Projection(std::int64_t in, std::int64_t out, const InitialKey& key,
                       std::int64_t blocks, double gain) {
  weight = register_parameter("weight", at::empty({out, in}));
  bias = register_parameter("bias", at::zeros({out}));
  const auto fans = static_cast<double>(in + out / blocks);
  keyed_uniform_(weight, key.seed, key.name + ".weight", gain * std::sqrt(6.0 / fans));
}

at::Tensor Projection::forward(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

SelfAttention::SelfAttention(const AttentionSettings& settings, const InitialKey& key)
    : settings_(settings) {
  const std::int64_t width = settings.width;
  qkv_ =
      register_module("qkv", std::make_shared<Projection>(width, 3 * width, key.child("qkv"), 3));
  out_ = register_module("out", std::make_shared<Projection>(width, width, key.child("out")));
}

at::Tensor SelfAttention::forward(const at::Tensor& x, const at::Tensor& bias, bool causal) const {
  const std::vector<at::Tensor> qkv = qkv_->forward(x).chunk(3, -1);
  const std::int64_t heads = settings_.heads;
  return out_->forward(attend(settings_, is_training(), split_heads(qkv[0], heads),
                              {split_heads(qkv[1], heads), split_heads(qkv[2], heads)}, bias,
                              causal));
}

at::Tensor SelfAttention::step(const at::Tensor& x, std::int64_t at,
                               const KeysValues& cache) const {
  const std::vector<at::Tensor> qkv = qkv_->forward(x).chunk(3, -1);
  const std::int64_t heads = settings_.heads;
  cache.first.narrow(2, at, 1).copy_(split_heads(qkv[1], heads));
  cache.second.narrow(2, at, 1).copy_(split_heads(qkv[2], heads));
  const KeysValues past = {cache.first.narrow(2, 0, at + 1), cache.second.narrow(2, 0, at + 1)};
  return out_->forward(
      attend(settings_, is_training(), split_heads(qkv[0], heads), past, {}, false));
}

CrossAttention::CrossAttention(const AttentionSettings& settings, const InitialKey& key)
    : settings_(settings) {
  const std::int64_t width = settings.width;
  query_ = register_module("query", std::make_shared<Projection>(width, width, key.child("query")));
  kv_ = register_module("kv", std::make_shared<Projection>(width, 2 * width, key.child("kv"), 2));
  out_ = register_module("out", std::make_shared<Projection>(width, width, key.child("out")));
}

KeysValues CrossAttention::keys_values(const at::Tensor& memory) const {
  const std::vector<at::Tensor> kv = kv_->forward(memory).chunk(2, -1);
  return {split_heads(kv[0], settings_.heads), split_heads(kv[1], settings_.heads)};
}

at::Tensor CrossAttention::forward(const at::Tensor& x, const KeysValues& memory,
                                   const at::Tensor& bias) const {
  const at::Tensor query = split_heads(query_->forward(x), settings_.heads);
  return out_->forward(attend(settings_, is_training(), query, memory, bias, false));
}

}  // namespace headrace::model
