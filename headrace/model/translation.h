// Greedy decoding with a translation Transformer: the likeliest token at each position, each
// computed once (keys and values of what came before are kept).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "headrace/model/sequence.h"

namespace headrace::model {

struct GreedyOptions {
  std::int64_t begin = -1;       // the id that starts each target; required
  std::int64_t end = -1;         // the id that ends it; required
  std::int64_t max_length = 80;  // of the result, in tokens; at most the model's max_length
};

/// Translates each row of `source_ids` [N, S] (int64, padded as in training) with the layers of
/// translation_transformer(), which may be those that are being trained. Returns N rows of ids,
/// without begin and end; equal to the argmax of a full forward at each position.
///
/// Runs in eval mode without gradients; each module's mode is put back, also after an exception.
/// Thread rule: nobody else uses the layers meanwhile.
/// Cost: one encoder pass and at most max_length decoder steps; stops when every row has ended.
/// Memory: 2 x decoder layers x N x max_length x width for the cache.
/// @throws base::ConfigError if the layers are not a translation Transformer's, or begin, end or
/// max_length are out of range.
std::vector<std::vector<std::int64_t>> greedy_decode(std::span<const NamedLayer> layers,
                                                     const at::Tensor& source_ids,
                                                     const GreedyOptions& options);

}  // namespace headrace::model
