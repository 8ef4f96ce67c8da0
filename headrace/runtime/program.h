// A schedule made ready for the workers: passes applied, proved, each cell resolved. What the
// executor walks; it knows no method's name.
#pragma once

#include <string>
#include <vector>

#include "headrace/schedule/passes.h"
#include "headrace/schedule/schedule.h"
#include "headrace/schedule/validate.h"

namespace headrace::runtime {

/// One cell of one worker's list.
struct Cell {
  schedule::Action action;
  bool keep_inputs_only = false;  // an F whose microbatch is recomputed later
};

struct Program {
  std::vector<std::vector<Cell>> workers;
  schedule::Schedule schedule;
  schedule::Proof proof;
  int num_microbatches = 0;
};

/// What a program is made from.
struct ProgramRequest {
  std::string schedule = "1F1B";
  int num_workers = 1;
  int num_microbatches = 1;  // M that the list is made for
  int present = 1;           // microbatches that the batch yields
  schedule::Remat remat = schedule::Remat::kNever;
  std::vector<int> tied_stages;
  bool update = false;
  bool training = true;  // false: forwards only
};

/// @throws base::ConfigError for an unknown name, a shape that the method does not allow, or an
///         action that this runtime does not run; base::ScheduleError for a list that cannot run.
Program make_program(const ProgramRequest& request);

}  // namespace headrace::runtime
