#include "tests/support/bits.h"

#include <cmath>
#include <cstring>

#include <ATen/ATen.h>

namespace headrace::test {

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.detach().cpu().contiguous();
  const at::Tensor y = b.detach().cpu().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

std::string differing(const Named& a, const Named& b) {
  if (a.size() != b.size()) {
    return std::to_string(a.size()) + " tensors against " + std::to_string(b.size());
  }
  std::string names;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].first != b[i].first || !same_bits(a[i].second, b[i].second)) names += a[i].first + " ";
  }
  return names;
}

Named snapshot(const Named& tensors) {
  Named copies;
  for (const auto& [name, tensor] : tensors) {
    copies.emplace_back(name, tensor.defined() ? tensor.detach().clone() : tensor);
  }
  return copies;
}

Named gradients(const Named& parameters) {
  Named copies;
  for (const auto& [name, tensor] : parameters) copies.emplace_back(name, tensor.grad());
  return snapshot(copies);
}

std::string further_apart(const Named& values, const Named& references) {
  if (values.size() != references.size()) return "different lists";
  double all = 0;
  for (const auto& [name, reference] : references) {
    if (reference.defined()) all += std::pow(reference.to(at::kDouble).norm().item<double>(), 2);
  }
  std::string names;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const at::Tensor& reference = references[i].second;
    if (values[i].second.defined() != reference.defined()) {
      names += values[i].first + " ";
    } else if (reference.defined()) {
      const at::Tensor exact = reference.to(at::kDouble);
      const double difference = (values[i].second.to(at::kDouble) - exact).norm().item<double>();
      const double limit = 1e-6 * (exact.norm().item<double>() + 1e-3 * std::sqrt(all));
      if (!(difference <= limit)) names += values[i].first + " ";
    }
  }
  return names;
}

}  // namespace headrace::test
