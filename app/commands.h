// The sub-commands of the torch-free program, one file each. Each returns the exit code and prints
// its result on stdout.
#pragma once

#include "app/command_line.h"

namespace headrace::app {

/// Checks the recipe and hands over to headrace-torch; with --dry-run it prints and stops.
int run_command(const TrainCommand& command, char** argv);

/// Hands over to headrace-torch.
int run_command(const DoctorCommand& command, char** argv);

int run_command(const CheckpointDiffCommand& command);
int run_command(const ScheduleListCommand& command);
int run_command(const ScheduleShowCommand& command);
int run_command(const RecipesCommand& command);

}  // namespace headrace::app
