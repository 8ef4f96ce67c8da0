// Which aten ops draw random numbers, and how a keyed generator reaches them.
#pragma once

#include <cstddef>
#include <optional>

namespace c10 {
class OperatorHandle;
struct FunctionSchema;
}  // namespace c10

namespace headrace::model {

enum class RandomOp {
  kNone,          // deterministic
  kKeyed,         // has a generator argument: it is filled
  kDecomposes,    // draws through ops of kind kKeyed, on every device
  kDrawsNothing,  // tagged, but draws nothing from a generator that the process shares
  kFusedDropout,  // kDecomposes on the CPU, one fused kernel elsewhere: replaced there
  kRefused,       // draws inside one kernel from the global generator, or is not known to us
};

/// Judges an op by its schema, its tag `nondeterministic_seeded` and a reviewed list. A tagged op
/// that is not on the list (of another release of LibTorch) is kRefused.
RandomOp classify(const c10::OperatorHandle& op);

/// The place of the argument `Generator?`.
std::optional<std::size_t> generator_argument(const c10::FunctionSchema& schema);

}  // namespace headrace::model
