// The flags of `gleaner plan`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "cli/cluster_flags.h"
#include "cli/collective_bound.h"
#include "cli/commands.h"
#include "cli/fleet_flags.h"
#include "cli/hiding_report.h"
#include "cli/topology_flags.h"

namespace gleaner::cli {

struct PlanFlags {
  ClusterFlags cluster;  // its job: a TrainingJob of the cluster; empty: the flags give the numbers
  int64_t workers = -1;  // -1: as many as worker_bandwidths lists
  int64_t summers = -1;  // -1: as many as summer_bandwidths lists
  int64_t local_ranks = 1;
  BandwidthFlags bandwidths;
  TensorFlags tensors;
  std::string partition_bytes;
  CollectiveFlags collective;
  TopologyFlags topology;
  HidingFlags hiding;
  std::string copy;  // empty: not given
  std::string output = "table";
};

// Adds the command `plan`. `action` carries it out.
void add_plan(flags::Command& app, Context& context, std::function<absl::Status(const PlanFlags&)> action);

// Returns InvalidArgument if flags exclude each other.
absl::Status check(const PlanFlags& flags);

}  // namespace gleaner::cli
