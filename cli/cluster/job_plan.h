// JobFleet has the machines that a job would get from the cluster now. Pure: fleet_for() applies the operator's choice
// of summers to objects that were read before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "common/fabric/fabric.h"
#include "common/placement/fleet.h"
#include "common/plan/model.h"
#include "common/topology/topology.h"

namespace gleaner::cli {

struct JobFleet {
  plan::Fleet fleet;
  std::vector<std::string> nodes;  // of the workers, then of the summers; an empty name: not placed yet
  uint32_t assumed = 0;            // number of workers whose bandwidth is unknown
  // The bandwidth that these workers are assumed to have: the median of the machines that take pods, or the bandwidth
  // limit in the job's pod template if that is lower.
  double assumed_bits_per_second = 0;
  // The network of the machines, whose hosts are the workers and then the summers; nullopt: no uplink of known
  // bandwidth parts them.
  std::optional<topology::Topology> network;
  std::vector<std::string> refusals;  // machines that can take no summer of this job: "n5: spare CPU 0.1 is below 0.5"
};

// `fabric`: the network of the cluster. Errors: FailedPrecondition if a worker's bandwidth must be assumed and no
// machine's speed is known.
absl::StatusOr<JobFleet> fleet_for(const api::TrainingJob& job, const placement::Fleet& cluster,
                                   const fabric::Fabric& fabric, const std::vector<placement::Pod>& pods,
                                   absl::Time now);

// Returns the text that `gleaner plan JOB` prints before the plan.
std::string to_text(const api::TrainingJob& job, const JobFleet& fleet);

}  // namespace gleaner::cli
