#include "headrace/runtime/program.h"

#include <set>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/schedule/registry.h"
#include "headrace/schedule/text.h"

namespace headrace::runtime {
namespace {

using schedule::Kind;

bool is_runnable(Kind kind) {
  switch (kind) {
    case Kind::kForward:
    case Kind::kBackward:
    case Kind::kRecompute:
    case Kind::kReduceTie:
    case Kind::kNorm:
    case Kind::kUpdate:
      return true;
    default:
      return false;
  }
}

std::vector<Cell> resolve(const std::vector<schedule::Action>& list) {
  std::set<std::pair<int, int>> recomputed;
  for (const schedule::Action& action : list) {
    if (action.kind == Kind::kRecompute) recomputed.emplace(action.stage, action.microbatch);
  }
  std::vector<Cell> cells;
  cells.reserve(list.size());
  for (const schedule::Action& action : list) {
    // In one process F and B take their packets themselves.
    if (schedule::is_transfer(action.kind)) continue;
    if (!is_runnable(action.kind)) {
      throw base::ConfigError(
          "the in-process runtime runs F, B, R, REDUCE_TIE, NORM and U, but the "
          "schedule has " +
          schedule::to_text(action));
    }
    cells.push_back({action, action.kind == Kind::kForward &&
                                 recomputed.contains({action.stage, action.microbatch})});
  }
  return cells;
}

}  // namespace

Program make_program(const ProgramRequest& request) {
  schedule::Schedule list = schedule::generate(
      request.schedule,
      {.num_workers = request.num_workers, .num_microbatches = request.num_microbatches});
  list = schedule::keep_microbatches(std::move(list), request.present);
  if (request.training) {
    list = schedule::add_remat(std::move(list), request.remat);
    list = schedule::add_update(std::move(list),
                                {.tied_stages = request.tied_stages, .update = request.update});
  } else {
    list = schedule::forward_only(std::move(list));
  }
  Program program;
  program.proof = schedule::validate(list);
  program.num_microbatches = request.present;
  for (const auto& worker : list.workers) program.workers.push_back(resolve(worker));
  program.schedule = std::move(list);
  return program;
}

}  // namespace headrace::runtime
