// How the rows of a batch are shared out among microbatches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headrace::runtime {

/// Sizes of at most `num_microbatches` microbatches of `rows` rows: they differ by at most one row,
/// larger ones first (9 in 3 is 3,3,3; 8 in 3 is 3,3,2). Fewer rows than microbatches give fewer
/// microbatches, never an empty one; no rows give none.
std::vector<std::int64_t> microbatch_sizes(std::int64_t rows, int num_microbatches);

/// Rows of a batch: the size of dimension 0 that all its tensors share.
/// @param what names the batch in errors ("input", "target").
/// @throws base::ConfigError for no tensors, an undefined or 0-dimensional one, or unequal rows
///         (every size told).
std::int64_t batch_rows(const std::vector<at::Tensor>& batch, const std::string& what);

/// Views of `batch` along dimension 0, one list per microbatch, each detached and with a version of
/// its own. Nothing is copied; strides stay.
std::vector<std::vector<at::Tensor>> split_rows(const std::vector<at::Tensor>& batch,
                                                const std::vector<std::int64_t>& sizes);

/// Joins what microbatches gave, position by position, along dimension 0 (0-dimensional values are
/// stacked). Inverse of split_rows.
std::vector<at::Tensor> join_rows(const std::vector<std::vector<at::Tensor>>& microbatches);

}  // namespace headrace::runtime
