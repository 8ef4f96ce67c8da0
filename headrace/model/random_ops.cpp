#include "headrace/model/random_ops.h"

#include <array>
#include <string_view>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

namespace headrace::model {
namespace {

// Every aten op of LibTorch 2.15 with the tag and without a generator argument (all overloads).
constexpr std::array<std::pair<std::string_view, RandomOp>, 44> kReviewed = {{
    {"aten::alpha_dropout", RandomOp::kDecomposes},
    {"aten::alpha_dropout_", RandomOp::kDecomposes},
    {"aten::dropout", RandomOp::kDecomposes},
    {"aten::dropout_", RandomOp::kDecomposes},
    {"aten::feature_alpha_dropout", RandomOp::kDecomposes},
    {"aten::feature_alpha_dropout_", RandomOp::kDecomposes},
    {"aten::feature_dropout", RandomOp::kDecomposes},
    {"aten::feature_dropout_", RandomOp::kDecomposes},
    {"aten::gru", RandomOp::kDecomposes},
    {"aten::lstm", RandomOp::kDecomposes},
    {"aten::rnn_relu", RandomOp::kDecomposes},
    {"aten::rnn_tanh", RandomOp::kDecomposes},
    {"aten::rand", RandomOp::kDecomposes},
    {"aten::rand_like", RandomOp::kDecomposes},
    {"aten::randint", RandomOp::kDecomposes},
    {"aten::randint_like", RandomOp::kDecomposes},
    {"aten::randn", RandomOp::kDecomposes},
    {"aten::randn_like", RandomOp::kDecomposes},
    {"aten::randperm", RandomOp::kDecomposes},
    {"aten::scaled_dot_product_attention", RandomOp::kDecomposes},
    {"aten::_scaled_dot_product_attention_math", RandomOp::kDecomposes},
    {"aten::native_dropout", RandomOp::kFusedDropout},
    // A choice of kernel; a softmax; the fused CPU kernel, which refuses dropout by itself.
    {"aten::_fused_sdp_choice", RandomOp::kDrawsNothing},
    {"aten::_nested_tensor_softmax_with_shape", RandomOp::kDrawsNothing},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", RandomOp::kDrawsNothing},
    {"aten::_cudnn_attention_forward_no_dropout_inplace", RandomOp::kDrawsNothing},
    {"aten::_flash_attention_forward_no_dropout_inplace", RandomOp::kDrawsNothing},
    // These are given their seed as an argument (backward passes replay the forward's).
    {"aten::_cudnn_attention_backward", RandomOp::kDrawsNothing},
    {"aten::_scaled_dot_product_cudnn_attention_backward", RandomOp::kDrawsNothing},
    {"aten::_scaled_dot_product_efficient_attention_backward", RandomOp::kDrawsNothing},
    {"aten::_fill_mem_eff_dropout_mask_", RandomOp::kDrawsNothing},
    {"aten::_cudnn_init_dropout_state", RandomOp::kDrawsNothing},
    // Fused kernels of accelerators: without dropout they draw nothing and are let through.
    {"aten::_cudnn_attention_forward", RandomOp::kRefused},
    {"aten::_cudnn_rnn", RandomOp::kRefused},
    {"aten::_efficient_attention_forward", RandomOp::kRefused},
    {"aten::_flash_attention_forward", RandomOp::kRefused},
    {"aten::_lstm_mps", RandomOp::kRefused},
    {"aten::_scaled_dot_product_attention_math_for_mps", RandomOp::kRefused},
    {"aten::_scaled_dot_product_cudnn_attention", RandomOp::kRefused},
    {"aten::_scaled_dot_product_efficient_attention", RandomOp::kRefused},
    {"aten::_scaled_dot_product_flash_attention", RandomOp::kRefused},
    {"aten::_scaled_dot_product_fused_attention_overrideable", RandomOp::kRefused},
    {"aten::_triton_scaled_dot_attention", RandomOp::kRefused},
    {"aten::miopen_rnn", RandomOp::kRefused},
}};

bool is_generator(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::GeneratorType) {
    return true;
  }
  const auto* optional = type.castRaw<c10::OptionalType>();
  return optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

}  // namespace

std::optional<std::size_t> generator_argument(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_generator(*arguments[i].type())) {
      return i;
    }
  }
  return std::nullopt;
}

RandomOp classify(const c10::OperatorHandle& op) {
  if (generator_argument(op.schema())) {
    return RandomOp::kKeyed;
  }
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) {
    return RandomOp::kNone;
  }
  const std::string_view name = op.operator_name().name;
  for (const auto& [reviewed, kind] : kReviewed) {
    if (reviewed == name) {
      return kind;
    }
  }
  return RandomOp::kRefused;
}

}  // namespace headrace::model
