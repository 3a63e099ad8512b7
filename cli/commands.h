// The subcommands of `gleaner`, beside those of cluster_commands.h and plan_flags.h. Each add_*() adds one subcommand
// with its flags; main() runs the chosen one.
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

void add_ranks(flags::Command& app, Context& context);
void add_sim(flags::Command& app, Context& context);
void add_topology(flags::Command& app, Context& context);
void add_probe(flags::Command& app, Context& context);
void add_schedule(flags::Command& app, Context& context);
void add_strategies(flags::Command& app, Context& context);
void add_completion(flags::Command& app, Context& context);
void add_run(flags::Command& app, Context& context);
void add_coordinator(flags::Command& app, Context& context);
void add_trace(flags::Command& app, Context& context);
void add_bench(flags::Command& app, Context& context);  // adds the next two as its subcommands
void add_bench_sum(flags::Command& bench, Context& context);
void add_bench_push_pull(flags::Command& bench, Context& context);

}  // namespace gleaner::cli
