// headrace train, the part that trains. The first SIGINT or SIGTERM ends the run between two steps,
// with its weights saved; a second one ends the program at once.
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <iostream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/json.h"
#include "headrace/train/trainer.h"

#include "app/commands_torch.h"
#include "app/program.h"

namespace headrace::app {
namespace {

// What a signal handler may touch: one lock-free number.
std::atomic<int> stop_signal{0};

constexpr std::string_view kStopping =
    "headrace: signal taken: the run ends after this step; a second signal ends it at once\n";

void on_signal(int number) {
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, number)) _exit(128 + number);
  const int before = errno;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kStopping.data(), kStopping.size());
  errno = before;
}

void install_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::string name_of(train::End end) {
  switch (end) {
    case train::End::kSteps:
      return "steps";
    case train::End::kTime:
      return "time";
    case train::End::kSignal:
      return "signal";
    case train::End::kNonFinite:
      return "nonfinite";
  }
  return "steps";
}

std::string json_of(const train::Outcome& outcome) {
  nlohmann::json document{{"format_version", 1},
                          {"run_folder", outcome.run_folder},
                          {"end", name_of(outcome.end)},
                          {"steps", outcome.steps},
                          {"first_loss", outcome.first_loss},
                          {"last_loss", outcome.last_loss}};
  if (!std::isfinite(outcome.first_loss) || !std::isfinite(outcome.last_loss)) {
    document["nonfinite"] = true;
  }
  return base::json_text(document);
}

}  // namespace

int run_with_torch(const TrainCommand& command) {
  if (command.dry_run) {
    throw base::ConfigError("headrace-torch always trains; for --dry-run call headrace");
  }
  const record::LoadedRecipe loaded = record::load_recipe(command.recipe, command.overrides);
  for (const std::string& warning : loaded.warnings) {
    std::cerr << "headrace: warning: " << warning << '\n';
  }
  install_handlers();
  train::TrainerOptions options;
  std::ostream& lines = command.json ? std::cerr : std::cout;
  options.print = [&lines](std::string_view line) { lines << line << std::endl; };
  options.stop_signal = &stop_signal;
  const train::Outcome outcome = train::train(loaded.recipe, options);
  if (command.json) std::cout << json_of(outcome);
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
