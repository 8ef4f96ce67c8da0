#include "headrace/model/loss.h"

#include <sstream>
#include <string>

#include <ATen/ATen.h>

#include "headrace/base/error.h"

namespace headrace::model {
namespace {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "an undefined tensor";
  }
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << ' ' << tensor.sizes();
  return text.str();
}

[[noreturn]] void refuse(const std::string& loss, const std::string& rule, const at::Tensor& output,
                         const at::Tensor& target) {
  throw base::ConfigError(loss + ": " + rule + "; found outputs " + describe(output) +
                          " and targets " + describe(target));
}

const at::Tensor& only_output(const std::string& loss, const Tensors& outputs) {
  if (outputs.size() != 1) {
    throw base::ConfigError(loss + ": the last layer must return one tensor, found " +
                            std::to_string(outputs.size()) +
                            "; write a Loss of your own to use several");
  }
  return outputs.front();
}

// Half precision is summed in fp32; fp64 stays (gradient checks need it).
at::Tensor at_least_fp32(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

const std::string kCrossEntropy = "cross_entropy";
const std::string kMse = "mse";

void check_class_targets(const at::Tensor& target) {
  if (!target.defined() || target.scalar_type() != at::kLong) {
    throw base::ConfigError(kCrossEntropy +
                            ": targets are class numbers and must be int64 (Long); found " +
                            describe(target) + "; convert them with .to(torch::kLong)");
  }
}

at::Tensor cross_entropy_sum(const Tensors& outputs, const at::Tensor& target,
                             std::int64_t ignore_index) {
  const at::Tensor& logits = only_output(kCrossEntropy, outputs);
  check_class_targets(target);
  if (!logits.defined() || !logits.is_floating_point()) {
    refuse(kCrossEntropy, "logits must be a floating tensor", logits, target);
  }
  if (logits.dim() < 2 || logits.sizes().slice(0, logits.dim() - 1) != target.sizes()) {
    refuse(kCrossEntropy,
           "logits [N, ..., C] need targets [N, ...] (the class is the last dimension)", logits,
           target);
  }
  const std::int64_t num_classes = logits.size(-1);
  if (num_classes == 0) {
    refuse(kCrossEntropy, "there must be at least one class", logits, target);
  }
  return at::cross_entropy_loss(at_least_fp32(logits).reshape({target.numel(), num_classes}),
                                target.reshape({target.numel()}), /*weight=*/{}, at::Reduction::Sum,
                                ignore_index);
}

void check_rows(const at::Tensor& target) {
  if (!target.defined() || target.dim() < 1) {
    throw base::ConfigError(kMse + ": targets need dimension 0, the rows; found " +
                            describe(target));
  }
}

at::Tensor mse_sum(const Tensors& outputs, const at::Tensor& target) {
  const at::Tensor& output = only_output(kMse, outputs);
  check_rows(target);
  if (!output.defined() || !output.is_floating_point() || !target.is_floating_point()) {
    refuse(kMse, "outputs and targets must be floating tensors", output, target);
  }
  if (output.sizes() != target.sizes()) {
    refuse(kMse, "outputs and targets must have the same shape (nothing is broadcast)", output,
           target);
  }
  std::int64_t row_elements = 1;
  for (std::int64_t dim = 1; dim < target.dim(); ++dim) {
    row_elements *= target.size(dim);
  }
  if (row_elements == 0) {
    refuse(kMse, "a row must have at least one element", output, target);
  }
  const at::Tensor difference = at_least_fp32(output);
  const at::Tensor wanted = target.to(difference.scalar_type());
  return at::mse_loss(difference, wanted, at::Reduction::Sum) / static_cast<double>(row_elements);
}

}  // namespace

Loss cross_entropy(std::int64_t ignore_index) {
  return {.sum =
              [ignore_index](const Tensors& outputs, const at::Tensor& target) {
                return cross_entropy_sum(outputs, target, ignore_index);
              },
          .weight =
              [ignore_index](const at::Tensor& target) {
                check_class_targets(target);
                return static_cast<double>(target.ne(ignore_index).sum().item<std::int64_t>());
              }};
}

Loss mse() {
  return {.sum = mse_sum, .weight = [](const at::Tensor& target) {
            check_rows(target);
            return static_cast<double>(target.size(0));
          }};
}

}  // namespace headrace::model
