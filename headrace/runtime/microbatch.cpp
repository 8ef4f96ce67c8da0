#include "headrace/runtime/microbatch.h"

#include <algorithm>
#include <sstream>

#include "headrace/base/error.h"

namespace headrace::runtime {

std::vector<std::int64_t> microbatch_sizes(std::int64_t rows, int num_microbatches) {
  const std::int64_t present = std::min<std::int64_t>(rows, num_microbatches);
  std::vector<std::int64_t> sizes(present);
  for (std::int64_t i = 0; i < present; ++i) {
    sizes[i] = rows / present + (i < rows % present ? 1 : 0);
  }
  return sizes;
}

std::int64_t batch_rows(const std::vector<at::Tensor>& batch, const std::string& what) {
  if (batch.empty()) {
    throw base::ConfigError("the " + what + " holds no tensor: give at least one");
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!batch[i].defined() || batch[i].dim() == 0) {
      throw base::ConfigError("the " + what + " is divided along dimension 0, but tensor " +
                              std::to_string(i) + " of it is " +
                              (batch[i].defined() ? "0-dimensional" : "undefined"));
    }
  }
  const bool equal = std::all_of(batch.begin(), batch.end(), [&](const at::Tensor& t) {
    return t.size(0) == batch[0].size(0);
  });
  if (!equal) {
    std::ostringstream sizes;
    for (const at::Tensor& tensor : batch) sizes << ' ' << tensor.sizes();
    throw base::ConfigError("all tensors of the " + what +
                            " must have the same number of rows (dimension 0); their shapes are" +
                            sizes.str());
  }
  return batch[0].size(0);
}

std::vector<std::vector<at::Tensor>> split_rows(const std::vector<at::Tensor>& batch,
                                                const std::vector<std::int64_t>& sizes) {
  std::vector<std::vector<at::Tensor>> microbatches(sizes.size());
  std::int64_t first = 0;
  for (std::size_t m = 0; m < sizes.size(); ++m) {
    for (const at::Tensor& tensor : batch) {
      // Views of one tensor share its version: a layer that changes its input in place would seem
      // to change the inputs of all other microbatches, which autograd then refuses.
      microbatches[m].push_back(tensor.narrow(0, first, sizes[m]).variable_data());
    }
    first += sizes[m];
  }
  return microbatches;
}

std::vector<at::Tensor> join_rows(const std::vector<std::vector<at::Tensor>>& microbatches) {
  std::vector<at::Tensor> joined;
  if (microbatches.empty()) return joined;
  for (std::size_t i = 0; i < microbatches[0].size(); ++i) {
    std::vector<at::Tensor> parts;
    for (const auto& microbatch : microbatches) parts.push_back(microbatch.at(i));
    joined.push_back(parts[0].dim() == 0 ? at::stack(parts) : at::cat(parts, 0));
  }
  return joined;
}

}  // namespace headrace::runtime
