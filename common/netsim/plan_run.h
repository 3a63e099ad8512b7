// run_plan() simulates one step of push-pull through summers: a plan (common/plan/plan.h) on a topology. Pure.
//
// Each worker pushes all partitions in the plan's order, each to its owner. When an owner has the contributions of all
// workers to a partition, it sends the sum to each worker. A worker's own partitions need no message to or from itself.
// All gradients are there at the start; sums take no time. The processors of the hosts take their overhead for each
// message that a member sends or receives, and for a worker's call (processors.h).
//
// A worker has one connection to each owner for contributions, and an owner one to each worker for sums. Partitions
// follow each other on a connection. Connections share links in proportion to the bytes that they carry in the whole
// step, which models credits by share; so all links of a balanced plan are busy from the first byte to the last.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/plan.h"
#include "common/topology/network.h"

namespace gleaner::netsim {

// `host_of[member]` is the host of that member; all differ. The result has one step, the whole exchange.
// InvalidArgument: the map does not have as many different hosts as the plan has members, the plan has an empty place,
// or the conditions are out of range. Unavailable: failed links left no path.
absl::StatusOr<RunResult> run_plan(const plan::Plan& plan, const topology::Network& network,
                                   const std::vector<uint32_t>& host_of, const Conditions& conditions,
                                   const Progress& progress = nullptr);

}  // namespace gleaner::netsim
