// The sub-commands of headrace-torch, one file each.
#pragma once

#include "app/command_line.h"

namespace headrace::app {

/// Trains. Exit code 0, 5 for numbers that were not finite, 130/143 when a signal ended it.
int run_with_torch(const TrainCommand& command);

/// What works on this machine, as a table or as JSON.
int run_with_torch(const DoctorCommand& command);

}  // namespace headrace::app
