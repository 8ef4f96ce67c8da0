// Every random op of this LibTorch, called through the dispatcher with arguments made from its
// schema: nothing that draws may escape the key.
#include "headrace/model/random_ops.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <gtest/gtest.h>

#include "headrace/base/error.h"
#include "headrace/model/intercept.h"
#include "headrace/model/keyed_generator.h"
#include "headrace/model/layer_guard.h"

namespace headrace::model {
namespace {

std::vector<c10::OperatorHandle> all_ops() {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::vector<c10::OperatorHandle> ops;
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (const auto op = dispatcher.findSchema(name)) {
      ops.push_back(*op);
    }
  }
  return ops;
}

std::vector<c10::OperatorHandle> ops_of(RandomOp kind) {
  std::vector<c10::OperatorHandle> ops;
  for (const auto& op : all_ops()) {
    if (op.operator_name().name.rfind("aten::", 0) == 0 && classify(op) == kind) {
      ops.push_back(op);
    }
  }
  return ops;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

at::Tensor tensor_argument(const std::string& op, const c10::Argument& argument) {
  if (argument.alias_info() != nullptr && contains(argument.name(), "out")) {
    const bool is_mask = contains(op, "native_dropout") && argument.name() == "out1";
    const bool is_index = contains(op, "multinomial") || contains(op, "randperm");
    // Some kernels write to it without resizing it.
    return is_index ? at::empty({0}, at::kLong)
                    : at::empty({8, 8}, is_mask ? at::kBool : at::kFloat);
  }
  if (argument.name() == "count") {
    return at::full({8, 8}, 10.0);
  }
  if (argument.name() == "high") {
    return at::scalar_tensor(1000, at::kLong);
  }
  if (contains(op, "dot_product")) {
    return at::linspace(0.1, 0.9, 128).reshape({1, 2, 8, 8});
  }
  const at::Tensor values = at::linspace(0.1, 0.9, 64).reshape({8, 8});
  return contains(op, "rrelu") ? -values : values;
}

c10::IValue value_argument(const std::string& op, const c10::Argument& argument) {
  const std::string& name = argument.name();
  if (name == "dropout_p" ||
      (name == "p" && argument.type()->kind() != c10::TypeKind::TensorType)) {
    return 0.5;
  }
  if (name == "train" || name == "training") {
    return true;
  }
  if (argument.default_value()) {
    return *argument.default_value();
  }
  switch (argument.type()->kind()) {
    case c10::TypeKind::TensorType:
      return tensor_argument(op, argument);
    case c10::TypeKind::OptionalType:
      return {};
    case c10::TypeKind::FloatType:
    case c10::TypeKind::NumberType:
      return 0.5;
    case c10::TypeKind::ListType:
      return std::vector<std::int64_t>{8, 8};
    default:
      if (name == "low" || name == "from") {
        return std::int64_t{1};
      }
      return std::int64_t{name == "num_samples" ? 4 : name == "n" ? 20 : 1000};
  }
}

/// What the op returns, all in one list.
std::vector<at::Tensor> call(const c10::OperatorHandle& op) {
  torch::jit::Stack stack;
  for (const auto& argument : op.schema().arguments()) {
    stack.push_back(value_argument(op.operator_name().name, argument));
  }
  op.callBoxed(&stack);
  std::vector<at::Tensor> outputs;
  for (const auto& value : stack) {
    if (value.isTensor() && value.toTensor().defined()) {
      outputs.push_back(value.toTensor());
    }
  }
  return outputs;
}

std::vector<at::Tensor> call_keyed(const c10::OperatorHandle& op, std::uint64_t microbatch) {
  const LayerGuard guard({7, 3, microbatch, layer_id("layer")}, nullptr, StatisticsMode::kDiscard);
  return call(op);
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return at::equal(x, y); });
}

at::Tensor global_state() {
  return at::detail::getDefaultCPUGenerator().get_state();
}

// Has no CPU kernel; or is called through modules in layer_guard_test.
bool is_called_elsewhere(const c10::OperatorHandle& op) {
  static const std::set<std::string> names = {"aten::_fused_dropout", "aten::gru", "aten::lstm",
                                              "aten::rnn_relu", "aten::rnn_tanh"};
  return names.count(op.operator_name().name) > 0;
}

void expect_keyed(RandomOp kind, std::size_t at_least) {
  std::size_t num_called = 0;
  for (const auto& op : ops_of(kind)) {
    if (is_called_elsewhere(op)) {
      continue;
    }
    SCOPED_TRACE(c10::toString(op.schema()));
    ++num_called;
    try {
      const at::Tensor before = global_state();
      const auto first = call_keyed(op, 0);
      const auto other = call_keyed(op, 1);
      const auto again = call_keyed(op, 0);
      EXPECT_TRUE(at::equal(before, global_state())) << "the global generator moved";
      EXPECT_FALSE(first.empty());
      EXPECT_TRUE(equal(first, again)) << "the same key drew other numbers";
      EXPECT_FALSE(equal(first, other)) << "another key drew the same numbers";
    } catch (const std::exception& error) {
      ADD_FAILURE() << std::string(error.what()).substr(0, 200);
    }
  }
  EXPECT_GE(num_called, at_least);
}

TEST(RandomOps, WithAGeneratorArgumentAreAllKeyed) {
  expect_keyed(RandomOp::kKeyed, 70);
}

TEST(RandomOps, WithoutAGeneratorArgumentAreKeyedByWhatTheyCall) {
  expect_keyed(RandomOp::kDecomposes, 25);
}

TEST(RandomOps, NativeDropoutIsKeyed) {
  expect_keyed(RandomOp::kFusedDropout, 2);
}

TEST(RandomOps, AreRefusedOnlyWhereAnAcceleratorFusesThem) {
  std::set<std::string> refused;
  for (const auto& op : ops_of(RandomOp::kRefused)) {
    refused.insert(op.operator_name().name);
  }
  // A name that is new here comes from another LibTorch: review it in random_ops.cpp.
  const std::set<std::string> reviewed = {"aten::_cudnn_attention_forward",
                                          "aten::_cudnn_rnn",
                                          "aten::_efficient_attention_forward",
                                          "aten::_flash_attention_forward",
                                          "aten::_lstm_mps",
                                          "aten::_scaled_dot_product_attention_math_for_mps",
                                          "aten::_scaled_dot_product_cudnn_attention",
                                          "aten::_scaled_dot_product_efficient_attention",
                                          "aten::_scaled_dot_product_flash_attention",
                                          "aten::_scaled_dot_product_fused_attention_overrideable",
                                          "aten::_triton_scaled_dot_attention",
                                          "aten::miopen_rnn"};
  EXPECT_EQ(refused, reviewed);
}

TEST(RandomOps, LiveInAtenOnly) {
  for (const auto& op : all_ops()) {
    const std::string& name = op.operator_name().name;
    if (name.rfind("aten::", 0) != 0 && name.rfind("inductor_prims::", 0) != 0) {
      EXPECT_EQ(classify(op), RandomOp::kNone) << name;
    }
  }
}

TEST(RandomOps, RefusedOneIsNamed) {
  const at::Tensor q = at::ones({1, 1, 4, 4});
  const LayerGuard guard({}, nullptr, StatisticsMode::kDiscard);
  try {
    at::_triton_scaled_dot_attention(q, q, q, 0.5);
    FAIL() << "not refused";
  } catch (const base::ConfigError& error) {
    EXPECT_TRUE(contains(error.what(), "aten::_triton_scaled_dot_attention")) << error.what();
    EXPECT_TRUE(contains(error.what(), "dropout")) << error.what();
  }
}

TEST(RandomOps, RefusedOneIsLetThroughWithoutDropout) {
  const at::Tensor q = at::ones({1, 1, 4, 4});
  const LayerGuard guard({}, nullptr, StatisticsMode::kDiscard);
  // This CPU has no kernel for it: LibTorch's own answer comes, not ours.
  EXPECT_THROW(at::_triton_scaled_dot_attention(q, q, q, 0.0), c10::Error);
}

TEST(RandomOps, FusedDropoutIsReplacedByOneThatScalesWhatItKeeps) {
  const at::Tensor input = at::ones({1000}).requires_grad_();
  const auto [output, mask] = keyed_dropout(input, 0.25, keyed_generator(1));
  EXPECT_TRUE(at::equal(output, mask.to(at::kFloat) * input / 0.75));
  EXPECT_NEAR(mask.to(at::kFloat).mean().item<double>(), 0.75, 0.05);
  output.sum().backward();
  EXPECT_TRUE(at::equal(input.grad(), mask.to(at::kFloat) / 0.75));
  EXPECT_TRUE(
      at::equal(std::get<0>(keyed_dropout(input, 1.0, keyed_generator(1))), at::zeros({1000})));
}

}  // namespace
}  // namespace headrace::model
