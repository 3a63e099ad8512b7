// `gleaner bench` and its subcommands. Each add_*() is as those of cli/commands.h.
#pragma once

#include "cli/commands.h"
#include "common/flags/command.h"

namespace gleaner::cli {

void add_bench(flags::Command& app, Context& context);  // adds the next two as its subcommands
void add_bench_sum(flags::Command& bench, Context& context);
void add_bench_push_pull(flags::Command& bench, Context& context);

}  // namespace gleaner::cli
