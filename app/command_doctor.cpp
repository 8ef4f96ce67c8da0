// headrace doctor: what works here is a question for LibTorch.
#include "app/commands.h"
#include "app/sibling.h"

namespace headrace::app {

int run_command(const DoctorCommand&, char** argv) {
  become_sibling(argv);
}

}  // namespace headrace::app
