#include "headrace/model/translation.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "headrace/base/error.h"
#include "headrace/model/transformer_layers.h"

namespace headrace::model {
namespace {

/// The layers by what they are.
struct Parts {
  TransformerEmbed* embed = nullptr;
  std::vector<TransformerEncoder*> encoders;
  std::vector<TransformerDecoder*> decoders;
  TransformerHead* head = nullptr;
};

Parts parts_of(std::span<const NamedLayer> layers) {
  Parts parts;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    torch::nn::Module* module = layers[i].module.get();
    // Each kind has its place: embed first, head last, no encoder after a decoder.
    if (auto* embed = dynamic_cast<TransformerEmbed*>(module); embed && i == 0) {
      parts.embed = embed;
    } else if (auto* encoder = dynamic_cast<TransformerEncoder*>(module);
               encoder && parts.decoders.empty()) {
      parts.encoders.push_back(encoder);
    } else if (auto* decoder = dynamic_cast<TransformerDecoder*>(module)) {
      parts.decoders.push_back(decoder);
    } else if (auto* head = dynamic_cast<TransformerHead*>(module);
               head && i + 1 == layers.size()) {
      parts.head = head;
    } else {
      throw base::ConfigError(
          "greedy decoding needs the layers of a translation Transformer "
          "(embed, encoders, decoders, head); layer " +
          std::to_string(i) + " '" + layers[i].name + "' is another, or out of its place");
    }
  }
  if (!parts.embed || parts.encoders.empty() || parts.decoders.empty() || !parts.head) {
    throw base::ConfigError(
        "greedy decoding needs all layers of a translation Transformer, found " +
        std::to_string(layers.size()) + ": embed " + (parts.embed ? "1" : "0") + ", encoders " +
        std::to_string(parts.encoders.size()) + ", decoders " +
        std::to_string(parts.decoders.size()) + ", head " + (parts.head ? "1" : "0"));
  }
  return parts;
}

/// Eval mode for as long as it lives; then every module's own mode again.
class EvalMode {
 public:
  explicit EvalMode(std::span<const NamedLayer> layers) {
    for (const NamedLayer& layer : layers) {
      for (const auto& module : layer.module->modules()) {
        modes_.emplace_back(module, module->is_training());
      }
      layer.module->eval();
    }
  }
  ~EvalMode() {
    // train() descends, and children stand after their parent: each gets its own mode last.
    for (const auto& [module, training] : modes_) module->train(training);
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
};

/// One decoder layer and what decoding keeps of it.
struct Cached {
  const TransformerDecoder* layer;
  KeysValues past;    // of the target so far
  KeysValues memory;  // of the source
};

/// The encoder's side, once per batch.
struct Encoded {
  at::Tensor bias;
  std::vector<Cached> decoders;
};

Encoded encode(const Parts& parts, const at::Tensor& source_ids, const GreedyOptions& options) {
  const at::Tensor begin = at::full({source_ids.size(0), 1}, options.begin, source_ids.options());
  Tensors state = parts.embed->forward({source_ids, begin});
  for (TransformerEncoder* encoder : parts.encoders) state = encoder->forward(std::move(state));
  Encoded encoded{state[2], {}};
  for (const TransformerDecoder* decoder : parts.decoders) {
    encoded.decoders.push_back({decoder,
                                decoder->make_cache(source_ids.size(0), options.max_length),
                                decoder->keys_values(state[0])});
  }
  return encoded;
}

/// ids [N, 1] at position `at` -> the likeliest next ids [N, 1].
at::Tensor next_ids(const Parts& parts, const Encoded& encoded, const at::Tensor& ids,
                    std::int64_t at) {
  at::Tensor target = parts.embed->embed_target(ids, at);
  for (const Cached& decoder : encoded.decoders) {
    target = decoder.layer->step(target, at, decoder.past, decoder.memory, encoded.bias);
  }
  return parts.head->logits(target).argmax(-1);
}

void check(const Parts& parts, const at::Tensor& source_ids, const GreedyOptions& options) {
  if (options.begin < 0 || options.end < 0) {
    throw base::ConfigError(
        "greedy decoding needs the ids that begin and end a target, found begin " +
        std::to_string(options.begin) + ", end " + std::to_string(options.end) +
        "; take them from the tokenizer");
  }
  if (options.max_length < 1 || options.max_length > parts.embed->max_length()) {
    throw base::ConfigError("greedy decoding: max_length must be 1 to the model's max_length " +
                            std::to_string(parts.embed->max_length()) + ", found " +
                            std::to_string(options.max_length));
  }
  TORCH_CHECK(source_ids.dim() == 2 && source_ids.scalar_type() == at::kLong,
              "source ids must be int64 [rows, length], found ", source_ids.scalar_type(), " ",
              source_ids.sizes());
}

}  // namespace

std::vector<std::vector<std::int64_t>> greedy_decode(std::span<const NamedLayer> layers,
                                                     const at::Tensor& source_ids,
                                                     const GreedyOptions& options) {
  const Parts parts = parts_of(layers);
  check(parts, source_ids, options);
  std::vector<std::vector<std::int64_t>> results(static_cast<std::size_t>(source_ids.size(0)));
  if (results.empty()) return results;

  const EvalMode eval(layers);
  const at::NoGradGuard no_grad;
  const Encoded encoded = encode(parts, source_ids, options);
  std::vector<bool> ended(results.size(), false);
  at::Tensor ids = at::full({source_ids.size(0), 1}, options.begin, source_ids.options());
  for (std::int64_t at = 0; at < options.max_length; ++at) {
    ids = next_ids(parts, encoded, ids, at);
    const at::Tensor on_cpu = ids.to(at::kCPU).contiguous();
    const auto* next = on_cpu.const_data_ptr<std::int64_t>();
    for (std::size_t row = 0; row < results.size(); ++row) {
      ended[row] = ended[row] || next[row] == options.end;
      if (!ended[row]) results[row].push_back(next[row]);
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool done) { return done; })) break;
  }
  return results;
}

}  // namespace headrace::model
