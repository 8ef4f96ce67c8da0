#include "headrace/model/keyed_init.h"

#include <cmath>
#include <functional>
#include <sstream>
#include <string>

#include <ATen/ATen.h>

#include "headrace/base/error.h"
#include "headrace/model/keyed_generator.h"

namespace headrace::model {
namespace {

// Keeps the keys of initial weights apart from those of layer calls.
constexpr std::uint64_t kInitDomain = 0x696e6974;  // "init"

void check(const at::Tensor& tensor, std::string_view name, const char* what, double value) {
  const std::string where = "initial weights of parameter '" + std::string(name) + "': ";
  if (!tensor.defined()) {
    throw base::ConfigError(where + "the tensor is undefined; register the parameter first");
  }
  if (!tensor.is_floating_point()) {
    throw base::ConfigError(where + "random values need a floating tensor, found " +
                            std::string(c10::toString(tensor.scalar_type())));
  }
  if (!std::isfinite(value) || value < 0) {
    std::ostringstream text;
    text << where << what << " must be finite and at least 0, found " << value;
    throw base::ConfigError(text.str());
  }
}

void fill(const at::Tensor& tensor, std::uint64_t seed, std::string_view name,
          const std::function<void(at::Tensor&, const at::Generator&)>& draw) {
  if (tensor.is_meta()) {
    return;
  }
  const at::NoGradGuard no_grad;
  const at::Generator generator = keyed_generator(mix_key({kInitDomain, seed, hash_name(name)}));
  const bool is_double = tensor.scalar_type() == at::kDouble;
  if (tensor.is_cpu() && tensor.is_contiguous() &&
      (is_double || tensor.scalar_type() == at::kFloat)) {
    at::Tensor target = tensor;
    draw(target, generator);
    return;
  }
  at::Tensor drawn = at::empty(tensor.sizes(), is_double ? at::kDouble : at::kFloat);
  draw(drawn, generator);
  tensor.copy_(drawn);
}

}  // namespace

void keyed_uniform_(const at::Tensor& tensor, std::uint64_t seed, std::string_view name,
                    double bound) {
  check(tensor, name, "bound", bound);
  fill(tensor, seed, name, [bound](at::Tensor& target, const at::Generator& generator) {
    target.uniform_(-bound, bound, generator);
  });
}

void keyed_normal_(const at::Tensor& tensor, std::uint64_t seed, std::string_view name,
                   double std) {
  check(tensor, name, "std", std);
  fill(tensor, seed, name, [std](at::Tensor& target, const at::Generator& generator) {
    target.normal_(0.0, std, generator);
  });
}

void keyed_xavier_uniform_(const at::Tensor& tensor, std::uint64_t seed, std::string_view name,
                           double gain) {
  check(tensor, name, "gain", gain);
  if (tensor.dim() < 2) {
    throw base::ConfigError("initial weights of parameter '" + std::string(name) +
                            "': Xavier needs a weight of at least 2 dimensions, found " +
                            std::to_string(tensor.dim()));
  }
  std::int64_t kernel = 1;
  for (std::int64_t dim = 2; dim < tensor.dim(); ++dim) {
    kernel *= tensor.size(dim);
  }
  const double fans = static_cast<double>((tensor.size(0) + tensor.size(1)) * kernel);
  keyed_uniform_(tensor, seed, name, fans > 0 ? gain * std::sqrt(6.0 / fans) : 0.0);
}

}  // namespace headrace::model
