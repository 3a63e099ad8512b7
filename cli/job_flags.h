// JobFlags has the flags that describe a job, for `gleaner coordinator` and `gleaner run`.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/fleet_flags.h"
#include "cli/topology_flags.h"
#include "common/base/log.h"
#include "common/flags/command.h"
#include "coordinator/roster/options.h"

namespace gleaner::cli {

// How tensors are summed.
struct StrategyFlags {
  std::string name = "summers";
  std::string bits;  // empty: not given
  std::string stages;
  int64_t radix = 0;  // 0: not given
};

// The values on the command line; to_options() parses them.
struct JobFlags {
  int64_t workers = 0;
  int64_t summers = 0;
  int64_t local_ranks = 1;
  std::string job = "default";
  BandwidthFlags bandwidths;
  std::string partition_bytes;
  StrategyFlags strategy;
  TopologyFlags topology;   // its `bandwidth` is not used
  std::string rank_map;     // empty: the default
  int64_t min_workers = 0;  // 0: not given
  int64_t max_workers = 0;  // 0: not given
  double regroup_timeout = 30;
  double start_timeout = 60;
  double deadline = 10;
  double declare_timeout = 0;  // 0: not given
  std::string summary;
  std::string metrics;
  std::string log_level;
};

void add_job_flags(flags::Command& command, JobFlags& flags, const std::string& default_log_level);

absl::StatusOr<coordinator::Options> to_options(const JobFlags& flags);

}  // namespace gleaner::cli
