#include "headrace/model/transformer_layers.h"

#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/modules/normalization.h>

#include "headrace/model/keyed_init.h"

namespace headrace::model {
namespace {

// Finite, so that a row of nothing but padding gives numbers instead of NaN; far enough that the
// exponential of any real score minus it is exactly 0.
constexpr double kMasked = -1e9;

using Norm = std::shared_ptr<torch::nn::LayerNormImpl>;

Norm make_norm(std::int64_t width) {
  return std::make_shared<torch::nn::LayerNormImpl>(torch::nn::LayerNormOptions({width}));
}

AttentionSettings attention_settings(const TransformerOptions& options) {
  return {options.width, options.heads, options.dropout};
}

at::Tensor drop(const at::Tensor& x, double probability, bool training) {
  return training && probability > 0 ? at::dropout(x, probability, true) : x;
}

/// [length, width]: sin in the even columns, cos in the odd ones (Vaswani et al., section 3.5).
at::Tensor sinusoids(std::int64_t length, std::int64_t width) {
  const at::TensorOptions fp64(at::kDouble);
  const at::Tensor position = at::arange(length, fp64).unsqueeze(1);
  const at::Tensor column = at::arange((width + 1) / 2, fp64).mul(2.0 / static_cast<double>(width));
  const at::Tensor angle = position / at::pow(at::scalar_tensor(10000.0, fp64), column);
  const at::Tensor pairs = at::stack({angle.sin(), angle.cos()}, 2).flatten(1);
  return pairs.narrow(1, 0, width).to(at::kFloat).contiguous();
}

void check_inputs(const Tensors& inputs, std::size_t count, const char* layer) {
  TORCH_CHECK(inputs.size() == count, layer, " takes ", count, " tensors, found ", inputs.size());
}

}  // namespace

at::Tensor embedding_weight(std::int64_t vocabulary, std::int64_t width, std::uint64_t seed,
                            const std::string& name) {
  at::Tensor weight = at::empty({vocabulary, width});
  keyed_normal_(weight, seed, name, 1.0 / std::sqrt(static_cast<double>(width)));
  return weight;
}

TransformerEmbed::TransformerEmbed(const TransformerOptions& options, const InitialKey& key,
                                   const at::Tensor& target_weight)
    : options_(options) {
  const auto make = [&](const char* name, std::int64_t vocabulary) {
    return register_parameter(
        name, embedding_weight(vocabulary, options.width, key.seed, key.child(name).name));
  };
  if (target_weight.defined() && options.source_vocabulary == options.target_vocabulary) {
    source_ = target_ = register_parameter("weight", target_weight);
  } else {
    source_ = make("source", options.source_vocabulary);
    target_ = target_weight.defined() ? register_parameter("target", target_weight)
                                      : make("target", options.target_vocabulary);
  }
  positions_ = register_buffer("positions", sinusoids(options.max_length, options.width));
}

at::Tensor TransformerEmbed::embed(const at::Tensor& ids, const at::Tensor& weight,
                                   std::int64_t first) const {
  TORCH_CHECK(ids.dim() == 2, "token ids must be [rows, length], found ", ids.sizes());
  TORCH_CHECK(first + ids.size(1) <= options_.max_length, "a sequence of ", first + ids.size(1),
              " tokens is longer than max_length ", options_.max_length,
              "; shorten it or raise max_length");
  const at::Tensor scaled =
      at::embedding(weight, ids).mul(std::sqrt(static_cast<double>(options_.width)));
  return drop(scaled.add(positions_.narrow(0, first, ids.size(1))), options_.dropout,
              is_training());
}

at::Tensor TransformerEmbed::embed_target(const at::Tensor& ids, std::int64_t first) const {
  return embed(ids, target_, first);
}

Tensors TransformerEmbed::forward(Tensors inputs) {
  check_inputs(inputs, 2, "the embedding layer");
  const at::Tensor& source_ids = inputs[0];
  at::Tensor source = embed(source_ids, source_, 0);
  at::Tensor target = embed_target(inputs[1], 0);
  at::Tensor bias = source_ids.eq(options_.padding).to(source.scalar_type()).mul_(kMasked);
  bias = bias.view({source_ids.size(0), 1, 1, source_ids.size(1)});
  return {std::move(source), std::move(target), std::move(bias)};
}

FeedForward::FeedForward(const TransformerOptions& options, const InitialKey& key)
    : dropout_(options.dropout) {
  const double gain = 1.0 / static_cast<double>(options.encoder_layers + options.decoder_layers);
  norm_ = register_module("norm", make_norm(options.width));
  in_ = register_module("in", std::make_shared<Projection>(options.width, options.feed_forward,
                                                           key.child("in"), 1, gain));
  out_ = register_module("out", std::make_shared<Projection>(options.feed_forward, options.width,
                                                             key.child("out"), 1, gain));
}

at::Tensor FeedForward::forward(const at::Tensor& x) const {
  const at::Tensor hidden = in_->forward(norm_->forward(x)).relu_();
  const at::Tensor branch = out_->forward(drop(hidden, dropout_, is_training()));
  return x + drop(branch, dropout_, is_training());
}

TransformerEncoder::TransformerEncoder(const TransformerOptions& options, const InitialKey& key,
                                       bool last)
    : dropout_(options.dropout) {
  norm_ = register_module("norm", make_norm(options.width));
  attention_ = register_module(
      "attention",
      std::make_shared<SelfAttention>(attention_settings(options), key.child("attention")));
  feed_forward_ = register_module(
      "feed_forward", std::make_shared<FeedForward>(options, key.child("feed_forward")));
  if (last) last_norm_ = register_module("last_norm", make_norm(options.width));
}

Tensors TransformerEncoder::forward(Tensors inputs) {
  check_inputs(inputs, 3, "an encoder layer");
  const at::Tensor source = std::move(inputs[0]);
  const at::Tensor branch = attention_->forward(norm_->forward(source), inputs[2], false);
  inputs[0] = feed_forward_->forward(source + drop(branch, dropout_, is_training()));
  if (last_norm_) inputs[0] = last_norm_->forward(inputs[0]);
  return inputs;
}

TransformerDecoder::TransformerDecoder(const TransformerOptions& options, const InitialKey& key)
    : options_(options) {
  const AttentionSettings settings = attention_settings(options);
  self_norm_ = register_module("self_norm", make_norm(options.width));
  self_ = register_module("self", std::make_shared<SelfAttention>(settings, key.child("self")));
  cross_norm_ = register_module("cross_norm", make_norm(options.width));
  cross_ = register_module("cross", std::make_shared<CrossAttention>(settings, key.child("cross")));
  feed_forward_ = register_module(
      "feed_forward", std::make_shared<FeedForward>(options, key.child("feed_forward")));
}

KeysValues TransformerDecoder::keys_values(const at::Tensor& memory) const {
  return cross_->keys_values(memory);
}

KeysValues TransformerDecoder::make_cache(std::int64_t rows, std::int64_t length) const {
  const std::vector<std::int64_t> shape = {rows, options_.heads, length,
                                           options_.width / options_.heads};
  const at::TensorOptions like = self_norm_->weight.options().requires_grad(false);
  return {at::empty(shape, like), at::empty(shape, like)};
}

at::Tensor TransformerDecoder::after_self(const at::Tensor& x, const KeysValues& memory,
                                          const at::Tensor& bias) const {
  const at::Tensor branch = cross_->forward(cross_norm_->forward(x), memory, bias);
  return feed_forward_->forward(x + drop(branch, options_.dropout, is_training()));
}

at::Tensor TransformerDecoder::step(const at::Tensor& target, std::int64_t at,
                                    const KeysValues& cache, const KeysValues& memory,
                                    const at::Tensor& bias) const {
  const at::Tensor branch = self_->step(self_norm_->forward(target), at, cache);
  return after_self(target + branch, memory, bias);
}

Tensors TransformerDecoder::forward(Tensors inputs) {
  check_inputs(inputs, 3, "a decoder layer");
  const at::Tensor target = std::move(inputs[1]);
  const at::Tensor branch = self_->forward(self_norm_->forward(target), {}, true);
  inputs[1] = after_self(target + drop(branch, options_.dropout, is_training()),
                         keys_values(inputs[0]), inputs[2]);
  return inputs;
}

TransformerHead::TransformerHead(const TransformerOptions& options, const InitialKey& key,
                                 const at::Tensor& weight) {
  norm_ = register_module("norm", make_norm(options.width));
  weight_ = register_parameter(
      "weight", weight.defined() ? weight
                                 : embedding_weight(options.target_vocabulary, options.width,
                                                    key.seed, key.child("weight").name));
  bias_ = register_parameter("bias", at::zeros({options.target_vocabulary}));
}

at::Tensor TransformerHead::logits(const at::Tensor& target) const {
  return at::linear(norm_->forward(target), weight_, bias_);
}

Tensors TransformerHead::forward(Tensors inputs) {
  check_inputs(inputs, 3, "the head");
  return {logits(inputs[1])};
}

}  // namespace headrace::model
