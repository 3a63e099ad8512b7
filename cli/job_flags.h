// What `gleaner coordinator` and `gleaner run` are both told about a job.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "operator/coordinator/options.h"

namespace CLI {
class App;
}

namespace gleaner::cli {

// As typed; parsed by to_options().
struct JobFlags {
  int64_t workers = 0;
  int64_t summers = 0;
  int64_t local_ranks = 1;
  std::string job = "default";
  std::string bandwidth, worker_bandwidths, summer_bandwidths, partition_bytes;
  int64_t min_workers = 0;  // 0: not given, and so for the next
  int64_t max_workers = 0;
  double regroup_timeout = 30;
  double start_timeout = 60;
  double deadline = 10;
  double declare_timeout = 60;
  std::string summary;
  std::string metrics;
  std::string log_level;
};

void add_job_flags(CLI::App& command, JobFlags& flags, const std::string& default_log_level);

absl::StatusOr<coordinator::Options> to_options(const JobFlags& flags);

}  // namespace gleaner::cli
