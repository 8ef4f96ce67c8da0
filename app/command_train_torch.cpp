// headrace train, the part that trains. The first SIGINT or SIGTERM ends the run between two steps,
// with its weights saved; a second one ends the program at once.
#include <atomic>
#include <csignal>
#include <iostream>

#include <unistd.h>

#include "headrace/train/trainer.h"

#include "app/commands_torch.h"
#include "app/program.h"

namespace headrace::app {
namespace {

// What a signal handler may touch: one lock-free number.
std::atomic<int> stop_signal{0};

void on_signal(int number) {
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, number)) _exit(128 + number);
}

void install_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int run_with_torch(const TrainCommand& command) {
  const record::LoadedRecipe loaded = record::load_recipe(command.recipe, command.overrides);
  for (const std::string& warning : loaded.warnings) {
    std::cerr << "headrace: warning: " << warning << '\n';
  }
  install_handlers();
  train::TrainerOptions options;
  options.print = [](std::string_view line) { std::cout << line << std::endl; };
  options.stop_signal = &stop_signal;
  const train::Outcome outcome = train::train(loaded.recipe, options);
  switch (outcome.end) {
    case train::End::kSteps:
    case train::End::kTime:
      return kDone;
    case train::End::kSignal:
      std::cerr << "headrace: stopped by signal " << outcome.signal << " after step "
                << outcome.steps << '\n';
      return 128 + outcome.signal;
    case train::End::kNonFinite:
      std::cerr << "headrace: " << outcome.message << '\n';
      return kNonFinite;
  }
  return kFailed;
}

}  // namespace headrace::app
