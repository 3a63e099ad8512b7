// The subcommands of `gleaner`, beside those of cluster_commands.h, plan_flags.h, topology_command_flags.h, networks/
// and bench/. Each add_*() adds one subcommand with its flags; main() runs the chosen one.
//
// Exit status: 0 if the command succeeded, 2 if the command line is wrong (the message says how to correct it), 1 for
// all other errors. Errors go to standard error as "gleaner COMMAND: message" ("kubectl gleaner COMMAND: message").
// Standard output has only results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/flags/command.h"

namespace gleaner::cli {

struct Context {
  std::vector<std::string> arguments;  // the command line, with the program's name
  std::function<absl::Status()> run;   // set by the action of the chosen subcommand
  int exit_status = 0;                 // returned by main() if run() returned OK; `gleaner run` sets a worker's status
};

void add_completion(flags::Command& app, Context& context);
void add_run(flags::Command& app, Context& context);
void add_coordinator(flags::Command& app, Context& context);
void add_trace(flags::Command& app, Context& context);

}  // namespace gleaner::cli
