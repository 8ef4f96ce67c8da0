// headrace-torch: the commands that need tensors. Users call headrace, which hands over to it.
#include <cstdlib>
#include <iostream>

#include "headrace/base/error.h"
#include "headrace/train/libtorch.h"

#include "app/commands_torch.h"
#include "app/program.h"

namespace {

using namespace headrace::app;

struct Run {
  int operator()(const ShowText&) const { return kDone; }
  int operator()(const TrainCommand& command) const { return run_with_torch(command); }
  int operator()(const DoctorCommand& command) const { return run_with_torch(command); }
  template <typename Other>
  int operator()(const Other&) const {
    throw headrace::base::ConfigError(
        "headrace-torch runs train and doctor only; call headrace, which hands over to it");
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int code = run_program(argc, argv, [](const Command& command) {
    headrace::train::check_libtorch();
    return std::visit(Run{}, command);
  });
  std::cout.flush();
  std::cerr.flush();
  // A worker that is stuck in a layer must not keep the program, or crash it while it ends.
  std::_Exit(code);
}
