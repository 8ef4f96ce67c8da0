// headrace schedule list | show: the methods, and one of them drawn and proved.
#include <algorithm>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/json.h"
#include "headrace/base/table.h"
#include "headrace/schedule/registry.h"
#include "headrace/schedule/text.h"
#include "headrace/schedule/validate.h"

#include "app/commands.h"
#include "app/program.h"

namespace headrace::app {

namespace {

constexpr std::int64_t kMostCells = 1 << 18;

std::string order_text(const schedule::Proof& proof) {
  return proof.gradient_order == schedule::GradientOrder::kAscending ? "ascending" : "other";
}

std::string table_of(const schedule::Schedule& list, const schedule::Proof& proof) {
  base::Table table({"worker", "actions", "most microbatches held"});
  for (std::size_t worker = 0; worker < list.workers.size(); ++worker) {
    table.add({std::to_string(worker), std::to_string(list.workers[worker].size()),
               std::to_string(proof.live_activations[worker])});
  }
  return table.to_text();
}

}  // namespace

int run_command(const ScheduleListCommand& command) {
  nlohmann::json methods = nlohmann::json::array();
  base::Table table({"name", "summary"});
  for (const schedule::Method& method : schedule::methods()) {
    methods.push_back({{"name", method.name}, {"summary", method.summary}});
    table.add({method.name, method.summary});
  }
  std::cout << (command.json ? base::json_text({{"format_version", 1}, {"methods", methods}})
                             : table.to_text());
  return kDone;
}

int run_command(const ScheduleShowCommand& command) {
  const std::int64_t cells = std::int64_t{command.workers} * command.microbatches;
  if (cells > kMostCells) {
    throw base::ConfigError("--workers " + std::to_string(command.workers) + " x --microbatches " +
                            std::to_string(command.microbatches) + " = " + std::to_string(cells) +
                            " cells; at most " + std::to_string(kMostCells) +
                            " are shown: give smaller numbers");
  }
  const schedule::Schedule list =
      schedule::generate(command.name, {command.workers, command.microbatches, 0});
  const schedule::Proof proof = schedule::validate(list);
  if (command.json) {
    std::cout << base::json_text({{"format_version", 1},
                                  {"name", list.name},
                                  {"num_stages", list.num_stages},
                                  {"num_microbatches", list.num_microbatches},
                                  {"csv", schedule::to_csv(list)},
                                  {"gradient_order", order_text(proof)},
                                  {"live_activations_by_worker", proof.live_activations},
                                  {"forward_packets_by_stage", proof.forward_packets},
                                  {"backward_packets_by_stage", proof.backward_packets}});
  } else {
    const std::string grid = schedule::draw(list);
    std::cout << list.name << ", " << command.workers << " workers, " << command.microbatches
              << " microbatches; gradients added in " << order_text(proof) << " order\n\n"
              << grid << (grid.ends_with('\n') ? "\n" : "\n\n") << table_of(list, proof);
  }
  return kDone;
}

}  // namespace headrace::app
