// headrace: the torch-free program. It starts in milliseconds and refuses a wrong command or recipe
// before LibTorch is loaded.
#include "app/commands.h"
#include "app/program.h"

namespace {

using namespace headrace::app;

struct Run {
  char** argv;

  int operator()(const ShowText&) const { return kDone; }
  int operator()(const TrainCommand& command) const { return run_command(command, argv); }
  int operator()(const DoctorCommand& command) const { return run_command(command, argv); }
  template <typename Other>
  int operator()(const Other& command) const {
    return run_command(command);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv,
                     [argv](const Command& command) { return std::visit(Run{argv}, command); });
}
