// Bitwise comparison, and a norm-wise one for sums that are only re-ordered.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headrace::test {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

/// Same shape, dtype and bytes (NaN equals NaN of the same bits).
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// Names of the tensors that differ in a bit, "" if none.
std::string differing(const Named& a, const Named& b);

/// Copies of the tensors as they are now.
Named snapshot(const Named& tensors);
/// Copies of the gradients; undefined stays undefined.
Named gradients(const Named& parameters);

/// Norm of the difference <= 1e-6 x (norm of the reference + 1e-3 x norm of all references).
/// Names of the tensors that are further apart, "" if none.
std::string further_apart(const Named& values, const Named& references);

}  // namespace headrace::test
