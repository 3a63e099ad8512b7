// The network of a job: the flags --topology and --rank-map of `gleaner run` and `gleaner coordinator`, and the rank
// maps that follow from them.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cli/job_flags.h"
#include "common/base/env.h"
#include "coordinator/roster/options.h"

namespace gleaner::cli {

// Adds --topology, --uplink, --latency and --rank-map.
void add_job_network_flags(flags::Command& command, JobFlags& flags);

// Sets options.reduction.network, the groups of racks and two-level that the network's racks give, and bandwidths that
// no flag states. Requires the workers, summers and bandwidths of `options` to be set. InvalidArgument names the flag.
absl::Status set_network(const JobFlags& flags, coordinator::Options& options);

// Finds the rank maps for the schedules that the job may use, which may take seconds, and logs what they win. Finds
// nothing without a network. Logs the groups of a schedule that nothing but its default names.
absl::Status find_rank_maps(const Env& env, coordinator::Options& options);

}  // namespace gleaner::cli
