// A loss is a sum over rows (or tokens) and the weight of those rows, so that the mean over a batch
// is right however the batch is divided.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headrace::model {

using Tensors = std::vector<at::Tensor>;

/// `sum(outputs, target)`: a scalar tensor, fp32 (fp64 for fp64 outputs), differentiable.
/// `weight(target)`: how many rows or tokens count; 0 is legal (nothing to learn). Both are called
/// for slices of the batch along dimension 0, and `weight` also for the whole batch; weight must be
/// additive over slices.
struct Loss {
  std::function<at::Tensor(const Tensors& outputs, const at::Tensor& target)> sum;
  std::function<double(const at::Tensor& target)> weight;
};

/// Cross entropy of logits [N, ..., C] (the class is the *last* dimension) and targets [N, ...],
/// int64; targets equal to `ignore_index` weigh nothing. Weight = targets that count.
/// @throws base::ConfigError (from `sum` and `weight`) for shapes or dtypes that do not fit.
Loss cross_entropy(std::int64_t ignore_index = -100);

/// Squared error, summed over all elements but averaged per row's elements. Weight = rows.
/// @throws base::ConfigError (from `sum` and `weight`) for shapes that differ or other dtypes.
Loss mse();

}  // namespace headrace::model
