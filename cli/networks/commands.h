// The subcommands about networks: probes of them, and the schedules, rank maps and strategies that suit them, beside
// topology_command.h. Each add_*() is as those of cli/commands.h.
#pragma once

#include "cli/commands.h"
#include "common/flags/command.h"

namespace gleaner::cli {

void add_probe(flags::Command& app, Context& context);
void add_schedule(flags::Command& app, Context& context);
void add_ranks(flags::Command& app, Context& context);
void add_strategies(flags::Command& app, Context& context);
void add_sim(flags::Command& app, Context& context);

}  // namespace gleaner::cli
