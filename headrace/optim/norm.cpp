#include "headrace/optim/norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <ATen/ATen.h>

#include "headrace/base/error.h"

namespace headrace::optim {
namespace {

// Elements that the device path widens to fp64 at a time: its scratch is two times 8 MiB.
constexpr std::int64_t kWidenedElements = 256 * kNormChunk;

// Eight independent sums break the chain of additions, so the loop runs at the speed of memory.
// Which lane an element falls into depends on its place in the chunk alone.
template <typename T>
double square_chunk(const T* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  const std::int64_t whole = n - n % kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::int64_t i = whole; i < n; ++i) {
    const double value = x[i];
    lanes[i - whole] += value * value;
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

template <typename T>
std::vector<double> squares_on_cpu(const at::Tensor& contiguous) {
  const T* data = contiguous.const_data_ptr<T>();
  const std::int64_t n = contiguous.numel();
  std::vector<double> chunks;
  chunks.reserve((n + kNormChunk - 1) / kNormChunk);
  for (std::int64_t at = 0; at < n; at += kNormChunk) {
    chunks.push_back(square_chunk(data + at, std::min<std::int64_t>(kNormChunk, n - at)));
  }
  return chunks;
}

std::vector<double> squares_on_device(const at::Tensor& contiguous) {
  const at::Tensor flat = contiguous.view({-1});
  const std::int64_t n = flat.numel();
  std::vector<at::Tensor> sums;
  for (std::int64_t at = 0; at < n; at += kWidenedElements) {
    at::Tensor part = flat.slice(0, at, std::min(n, at + kWidenedElements)).to(at::kDouble);
    const std::int64_t whole = part.numel() / kNormChunk * kNormChunk;
    if (whole > 0) {
      sums.push_back(part.slice(0, 0, whole).view({-1, kNormChunk}).square().sum(1));
    }
    if (whole < part.numel()) {
      sums.push_back(part.slice(0, whole).square().sum().view({1}));
    }
  }
  const at::Tensor on_cpu = at::cat(sums).to(at::kCPU);
  const double* first = on_cpu.const_data_ptr<double>();
  return {first, first + on_cpu.numel()};
}

void check_gradient(const at::Tensor& gradient) {
  if (gradient.layout() != at::kStrided) {
    throw base::ConfigError(c10::str("a gradient of shape ", gradient.sizes(), " has layout ",
                                     gradient.layout(),
                                     "; the norm needs dense gradients: build the embedding with "
                                     "sparse(false)"));
  }
  const at::ScalarType type = gradient.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kHalf && type != at::kBFloat16) {
    throw base::ConfigError(c10::str("a gradient of shape ", gradient.sizes(), " has dtype ", type,
                                     "; its norm is defined for float, double, half and bfloat16: "
                                     "keep such parameters out of training"));
  }
}

double left_fold(std::span<const double> terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}

}  // namespace

std::vector<double> chunk_squares(const at::Tensor& gradient) {
  if (!gradient.defined()) {
    return {};
  }
  check_gradient(gradient);
  if (gradient.numel() == 0) {
    return {};
  }
  const at::Tensor contiguous = gradient.detach().contiguous();
  if (contiguous.is_cpu() && contiguous.scalar_type() == at::kFloat) {
    return squares_on_cpu<float>(contiguous);
  }
  if (contiguous.is_cpu() && contiguous.scalar_type() == at::kDouble) {
    return squares_on_cpu<double>(contiguous);
  }
  return squares_on_device(contiguous);
}

double squared_norm(const at::Tensor& gradient) {
  return left_fold(chunk_squares(gradient));
}

double global_norm(std::span<const double> squares) {
  return std::sqrt(left_fold(squares));
}

double clip_scale(double norm, double max_norm) {
  const double scale = max_norm / (norm + 1e-6);
  return scale > 1.0 ? 1.0 : scale;  // not std::min, which would turn NaN into 1
}

}  // namespace headrace::optim
