// The outputs of `gleaner sim` for one run.
#pragma once

#include <string>

#include "cli/networks/simulation.h"
#include "common/topology/topology.h"

namespace gleaner::cli {

// {"bytes", "seconds", "bound_seconds", "bound_by", "steps": [{"seconds", "worst_link": {"from", "to", "flows"}}],
// "events"}. `worst_link` is null in a step in which no link carried a message.
std::string to_json(const Simulation& simulation, const topology::Topology& topology);

// The figures, and a line for each step. Consecutive steps that take about as long (2 %), with as many flows on the
// worst link, share a line with their mean. `title` is the first line.
std::string to_table(const Simulation& simulation, const topology::Topology& topology, const std::string& title);

}  // namespace gleaner::cli
