#include "headrace/model/transformer.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <torch/nn/modules/container/any.h>

#include "headrace/base/error.h"
#include "headrace/model/transformer_layers.h"

namespace headrace::model {
namespace {

using Strong = c10::intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;
using Weak = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;

/// Hands one weight tensor to the two layers of one build that share it: whoever is built first
/// makes it, the other one takes it. A layer that is built again before its partner starts a new
/// build. Holds no weight alive.
class TiedWeight {
 public:
  enum class Use { kEmbed, kHead };

  TiedWeight(const TransformerOptions& options, std::uint64_t seed)
      : vocabulary_(options.target_vocabulary),
        width_(options.width),
        seed_(seed),
        name_(options.source_vocabulary == options.target_vocabulary ? "embed.weight"
                                                                     : "embed.target") {}

  at::Tensor take(Use use) {
    const std::lock_guard lock(mutex_);
    if (open_ && waits_for_ == use) {
      Strong impl = std::exchange(open_, std::nullopt)->lock();
      if (impl) return at::Tensor(std::move(impl));
    }
    at::Tensor weight = embedding_weight(vocabulary_, width_, seed_, name_);
    open_ = Weak(weight.getIntrusivePtr());
    waits_for_ = use == Use::kEmbed ? Use::kHead : Use::kEmbed;
    return weight;
  }

 private:
  const std::int64_t vocabulary_;
  const std::int64_t width_;
  const std::uint64_t seed_;
  const std::string name_;
  std::mutex mutex_;
  std::optional<Weak> open_;
  Use waits_for_ = Use::kHead;
};

void check_range(const char* name, std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24U;
  if (value < 1 || value > kMost) {
    throw base::ConfigError(std::string("transformer: ") + name + " must be 1 to " +
                            std::to_string(kMost) + ", found " + std::to_string(value));
  }
}

/// As count_parameters(), in doubles, which do not overflow.
double approximate_parameters(const TransformerOptions& o) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double block = real(o.width) * (12 * real(o.width) + 4 * real(o.feed_forward));
  return real(std::max(o.encoder_layers, o.decoder_layers)) * block +
         (real(o.source_vocabulary) + 2 * real(o.target_vocabulary) + real(o.max_length)) *
             real(o.width);
}

/// `make(key)` builds the layer; the key's name is the layer's.
template <typename Make>
LayerSpec spec(std::string name, std::uint64_t seed, Make make) {
  return {name, [key = InitialKey{seed, name}, make]() { return torch::nn::AnyModule(make(key)); }};
}

}  // namespace

void check(const TransformerOptions& options) {
  check_range("source_vocabulary", options.source_vocabulary);
  check_range("target_vocabulary", options.target_vocabulary);
  check_range("width", options.width);
  check_range("heads", options.heads);
  check_range("feed_forward", options.feed_forward);
  check_range("encoder_layers", options.encoder_layers);
  check_range("decoder_layers", options.decoder_layers);
  check_range("max_length", options.max_length);
  if (options.width % options.heads != 0) {
    const std::int64_t per_head = options.width / options.heads;
    throw base::ConfigError("transformer: width must be a multiple of heads, found width " +
                            std::to_string(options.width) + ", heads " +
                            std::to_string(options.heads) + " (" + std::to_string(options.heads) +
                            " x " + std::to_string(per_head) + " = " +
                            std::to_string(options.heads * per_head) + "); change one of them");
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    throw base::ConfigError("transformer: dropout must be at least 0 and below 1, found " +
                            std::to_string(options.dropout));
  }
  constexpr double kMostParameters = 1e13;
  if (approximate_parameters(options) > kMostParameters) {
    throw base::ConfigError(
        "transformer: these sizes make about " + std::to_string(approximate_parameters(options)) +
        " parameters, at most 1e13 are taken; lower width (" + std::to_string(options.width) +
        "), feed_forward (" + std::to_string(options.feed_forward) + ") or the layers (" +
        std::to_string(options.encoder_layers) + " + " + std::to_string(options.decoder_layers) +
        ")");
  }
}

std::int64_t count_parameters(const TransformerOptions& options) {
  check(options);
  const std::int64_t d = options.width;
  const std::int64_t f = options.feed_forward;
  const std::int64_t encoder = 4 * d * d + 2 * d * f + 9 * d + f;
  const std::int64_t decoder = 8 * d * d + 2 * d * f + 15 * d + f;
  std::int64_t embeddings = options.source_vocabulary + options.target_vocabulary;
  std::int64_t head = options.target_vocabulary;
  if (options.tied_embedding) {
    head = 0;
    if (options.source_vocabulary == options.target_vocabulary) {
      embeddings = options.target_vocabulary;
    }
  }
  return (embeddings + head) * d + options.target_vocabulary + options.encoder_layers * encoder +
         options.decoder_layers * decoder + 4 * d;
}

std::vector<LayerSpec> translation_transformer(const TransformerOptions& options,
                                               std::uint64_t seed) {
  check(options);
  const auto tied = options.tied_embedding ? std::make_shared<TiedWeight>(options, seed) : nullptr;
  std::vector<LayerSpec> layers;
  layers.push_back(spec("embed", seed, [options, tied](const InitialKey& key) {
    const at::Tensor weight = tied ? tied->take(TiedWeight::Use::kEmbed) : at::Tensor();
    return std::make_shared<TransformerEmbed>(options, key, weight);
  }));
  for (std::int64_t i = 0; i < options.encoder_layers; ++i) {
    const bool last = i + 1 == options.encoder_layers;
    layers.push_back(
        spec("encoder_" + std::to_string(i), seed, [options, last](const InitialKey& key) {
          return std::make_shared<TransformerEncoder>(options, key, last);
        }));
  }
  for (std::int64_t i = 0; i < options.decoder_layers; ++i) {
    layers.push_back(spec("decoder_" + std::to_string(i), seed, [options](const InitialKey& key) {
      return std::make_shared<TransformerDecoder>(options, key);
    }));
  }
  layers.push_back(spec("head", seed, [options, tied](const InitialKey& key) {
    const at::Tensor weight = tied ? tied->take(TiedWeight::Use::kHead) : at::Tensor();
    return std::make_shared<TransformerHead>(options, key, weight);
  }));
  return layers;
}

}  // namespace headrace::model
