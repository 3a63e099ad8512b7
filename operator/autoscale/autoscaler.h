// Autoscaler decides how many summers each job should have, and on which machines (docs/autoscaler.md).
//
// The caller passes the state of all jobs to each round. A verdict holds until the next round. In a round, each job
// first loses summers (reduction.h); then an Auction gives free machines to jobs. Between rounds the Autoscaler keeps
// only a JobMemory of each job. It does no I/O; one thread uses it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/job_memory.h"

namespace gleaner::autoscale {

class Autoscaler {
 public:
  explicit Autoscaler(const Settings& settings) : settings_(settings) {}

  // Returns a verdict for each job, by key. `now` must not decrease. Forgets jobs that are not in `jobs`.
  std::map<std::string, Verdict> round(const std::vector<Job>& jobs, absl::Duration now);

 private:
  const Settings settings_;
  std::map<std::string, JobMemory> memories_;  // by job
};

}  // namespace gleaner::autoscale
