#include "headrace/model/intercept.h"

#include <atomic>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include "headrace/base/error.h"
#include "headrace/model/batch_norm_statistics.h"
#include "headrace/model/keyed_generator.h"
#include "headrace/model/random_ops.h"

namespace headrace::model {
namespace {

// A key that LibTorch keeps for tests and never uses: above autograd, so that what we pass in is
// what autograd and all that lies below it see.
constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

thread_local GuardedCall* current_call = nullptr;

c10::DispatchKeySet below(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
}

// The arguments of an op, on top of the stack.
c10::ArrayRef<c10::IValue> arguments_of(const c10::OperatorHandle& op,
                                        const torch::jit::Stack& stack) {
  return torch::jit::last(stack, op.schema().arguments().size());
}

c10::IValue& argument(const c10::OperatorHandle& op, torch::jit::Stack& stack, std::size_t index) {
  return stack[stack.size() - op.schema().arguments().size() + index];
}

// Where an op runs: its first tensor's device, else the device it was asked for, else the CPU.
c10::Device device_of(c10::ArrayRef<c10::IValue> arguments) {
  for (const c10::IValue& value : arguments) {
    if (value.isTensor() && value.toTensor().defined()) {
      return value.toTensor().device();
    }
  }
  for (const c10::IValue& value : arguments) {
    if (value.isDevice()) {
      return value.toDevice();
    }
  }
  return c10::kCPU;
}

// The key is on, but no guard is: LibTorch took the key along to a thread that the layer started.
[[noreturn]] void refuse_other_thread(const c10::OperatorHandle& op) {
  std::ostringstream text;
  text << op.operator_name()
       << " is called on a thread that a layer started, where its draw cannot be keyed by (seed, "
          "step, microbatch, layer); draw on the thread that calls forward(), or pass a generator";
  throw base::ConfigError(text.str());
}

void draw_with_key(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  c10::IValue& generator = argument(op, *stack, *generator_argument(op.schema()));
  const bool given = generator.isGenerator() && generator.toGenerator().defined();
  const c10::Device device = device_of(arguments_of(op, *stack));
  if (!given && !device.is_meta()) {
    if (current_call == nullptr) {
      refuse_other_thread(op);
    }
    generator = current_call->generator(device);
  }
  op.redispatchBoxed(below(keys), stack);
}

// Fused kernels draw only when a dropout argument is above 0 and `train` is on.
bool draws(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values) {
  bool has_dropout = false;
  bool drops = false;
  bool trains = true;
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if ((arguments[i].name() == "dropout" || arguments[i].name() == "dropout_p") &&
        values[i].isDouble()) {
      has_dropout = true;
      drops = values[i].toDouble() > 0;
    }
    if (arguments[i].name() == "train" && values[i].isBool()) {
      trains = values[i].toBool();
    }
  }
  return !has_dropout || (drops && trains);
}

void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (current_call != nullptr && draws(op, arguments_of(op, *stack))) {
    std::ostringstream text;
    text << "every random draw inside a layer must be keyed by (seed, step, microbatch, layer), "
            "but "
         << op.operator_name()
         << " draws inside one fused kernel, which takes no generator; set its dropout to 0, or "
            "use a layer that drops out by torch::nn::Dropout (for attention: the math kernel)";
    throw base::ConfigError(text.str());
  }
  op.redispatchBoxed(below(keys), stack);
}

// native_dropout(input, p, train): one fused kernel on accelerators, ops that are keyed on the CPU.
void native_dropout(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const auto arguments = arguments_of(op, *stack);
  const c10::Device device = device_of(arguments);
  const bool trains = arguments[2].isNone() || arguments[2].toBool();
  if (current_call == nullptr || device.is_cpu() || device.is_meta() || !trains) {
    op.redispatchBoxed(below(keys), stack);
    return;
  }
  auto [output, mask] = keyed_dropout(arguments[0].toTensor(), arguments[1].toDouble(),
                                      current_call->generator(device));
  torch::jit::drop(*stack, arguments.size());
  torch::jit::push(*stack, std::move(output), std::move(mask));
}

// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, ...)
constexpr std::size_t kInput = 0;
constexpr std::size_t kRunningMean = 3;
constexpr std::size_t kRunningVar = 4;
constexpr std::size_t kTraining = 5;
constexpr std::size_t kMomentum = 6;

void batch_norm(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  BatchNormCall* const call = current_call == nullptr ? nullptr : current_call->batch_norm();
  const auto arguments = arguments_of(op, *stack);
  if (call == nullptr || !arguments[kTraining].toBool() || !arguments[kRunningMean].isTensor()) {
    op.redispatchBoxed(below(keys), stack);
    return;
  }
  const at::Tensor running_mean = arguments[kRunningMean].toTensor();
  const double momentum = arguments[kMomentum].toDouble();
  std::optional<BatchNormUse> use = call->scratch_for(running_mean, momentum);
  if (!use) {
    op.redispatchBoxed(below(keys), stack);
    return;
  }
  const at::Tensor input = arguments[kInput].toTensor();
  argument(op, *stack, kRunningMean) = use->mean;
  argument(op, *stack, kRunningVar) = use->var;
  argument(op, *stack, kMomentum) = use->momentum;
  op.redispatchBoxed(below(keys), stack);
  use->momentum = momentum;
  use->count = input.size(1) == 0 ? 0 : input.numel() / input.size(1);
  call->ran(running_mean, *std::move(use));
}

void install(torch::Library& library, const c10::OperatorHandle& op) {
  const std::string name = c10::toString(op.operator_name());
  if (name == "aten::batch_norm") {
    library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&batch_norm>());
    return;
  }
  switch (classify(op)) {
    case RandomOp::kKeyed:
      library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&draw_with_key>());
      break;
    case RandomOp::kRefused:
      library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&refuse>());
      break;
    case RandomOp::kFusedDropout:
      if (op.operator_name().overload_name.empty()) {
        library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&native_dropout>());
      }
      break;
    case RandomOp::kNone:
    case RandomOp::kDecomposes:
    case RandomOp::kDrawsNothing:
      break;
  }
}

// Never destroyed: a worker that is stuck in user code may still dispatch while the process exits.
struct Registrations {
  torch::Library everything{torch::Library::IMPL, "_", kKey, __FILE__, __LINE__};
  torch::Library aten{torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__};

  Registrations() {
    // First, so that no thread finds the key switched on and an op without an answer.
    everything.fallback(torch::CppFunction::makeFallthrough());
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findSchema(name);
      if (op && name.getNamespace() == "aten") {
        install(aten, *op);
      }
    }
  }
};

}  // namespace

const at::Generator& GuardedCall::generator(c10::Device device) {
  for (const at::Generator& generator : generators_) {
    if (generator.device() == device) {
      return generator;
    }
  }
  if (device.is_cpu()) {
    generators_.push_back(keyed_generator(key_));
  } else {
    at::Generator generator = at::globalContext().defaultGenerator(device).clone();
    generator.set_current_seed(key_);
    generators_.push_back(std::move(generator));
  }
  return generators_.back();
}

void install_interception() {
  // The store is what keeps the object reachable: a plain static pointer that nobody reads is
  // optimised away, and leak checkers then take the registrations for lost.
  static std::atomic<const Registrations*> kept{nullptr};
  static const bool installed = [] {
    kept.store(new Registrations());
    return true;
  }();
  static_cast<void>(installed);
}

InterceptionScope::InterceptionScope(GuardedCall& call)
    : include_(kKey), outer_(std::exchange(current_call, &call)) {}

InterceptionScope::~InterceptionScope() {
  current_call = outer_;
}

std::tuple<at::Tensor, at::Tensor> keyed_dropout(const at::Tensor& input, double p,
                                                 const at::Generator& generator) {
  at::Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p, generator);
  const double scale = p < 1 ? 1 / (1 - p) : 0.0;
  return {input * mask * scale, mask};
}

}  // namespace headrace::model
