// headrace checkpoint diff: two checkpoints compared to the bit.
#include <iostream>

#include "headrace/record/checkpoint_diff.h"

#include "app/commands.h"
#include "app/program.h"

namespace headrace::app {

int run_command(const CheckpointDiffCommand& command) {
  const record::CheckpointDiff diff = record::diff_checkpoints(command.a, command.b);
  std::cout << (command.json ? record::to_json(diff) : record::to_text(diff));
  return diff.equal() ? kDone : kFailed;
}

}  // namespace headrace::app
