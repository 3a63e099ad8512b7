// Observation is the state of one TrainingJob at one time: its objects as the caches have them, its coordinator
// session, and the request of the autoscaler. It holds values only, so decide() computes the same decision from a copy
// of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/api/reduction_plan.h"
#include "common/api/training_job.h"
#include "common/fabric/fabric.h"
#include "common/placement/placement.h"
#include "coordinator/status/job_state.h"
#include "operator/autoscale/autoscale.h"
#include "operator/reconcile/pod_view.h"
#include "operator/reconcile/worker_nics.h"

namespace gleaner::reconcile {

// The fields of a node that decide() uses.
struct NodeView {
  bool exists = false;
  bool ready = false;
  double bits_per_second = 0;     // speed in its profile; 0: unknown
  DeviceSpeeds rdma_speeds = {};  // in its profile
};

// The changes of a running job's summers that the autoscaler requests.
struct ScalingRequest {
  autoscale::Verdict verdict;
  uint32_t attempt = 0;  // the job's attempt when the request was made
  // Index of the summer to add. It equals status.nextSummer until the summer is created, so a request adds at most one
  // summer.
  uint32_t next_summer = 0;
  // The spare bandwidth of each summer's machine, by index of the summer.
  std::vector<std::pair<uint32_t, double>> spare_bits_per_second;
  std::vector<uint32_t> overdue;  // summers that still run long after they were told to leave
};

// A job whose decisions can't be carried out for this time has the condition ReconcileFailing.
inline constexpr absl::Duration kFailingPatience = absl::Seconds(30);

// Reconciliations of a job that fail again and again.
struct Failing {
  absl::Duration lasting;  // since the first failure
  std::string why;         // of the last failure
  bool is_outage = false;  // the API server could not be reached, as the last failure says
};

// The API server has refused the summers that the operator last tried to create.
struct SummersRefused {
  std::string reason;    // of the condition: "QuotaExceeded", "PodRefused"
  std::string why;       // the API server's words
  absl::Duration pause;  // the time for which the operator waits before it tries again
};

struct Observation {
  api::TrainingJob job;
  std::vector<std::shared_ptr<const PodView>> pods;  // the pods that this job controls, of all attempts
  std::optional<api::ReductionPlan> plan;
  // The session of the job's attempt. Absent: this operator does not coordinate the attempt yet.
  std::optional<coordinator::JobState> session;
  std::optional<ScalingRequest> scaling;  // absent: the autoscaler has not judged the job yet
  // The time for which the operator waits before it tries again to create objects that the API server has refused.
  absl::Duration creation_pause;
  std::optional<SummersRefused> summers_refused;     // absent: no refusal is known to this operator
  std::optional<Failing> failing;                    // absent: the last decision was carried out
  absl::Duration session_ended_for;                  // time since the session got its outcome
  absl::flat_hash_map<std::string, NodeView> nodes;  // the nodes of `pods`, by name
  // The machines that could take a summer of this job, best first. Absent unless needs_candidates()
  // (summer_placement.h), since the search goes through all machines of the cluster.
  std::optional<std::vector<placement::Candidate>> candidates;
  // The network of the cluster.
  std::shared_ptr<const fabric::Fabric> fabric = std::make_shared<const fabric::Fabric>();
  absl::Time now;
};

// Returns the node of this name; a NodeView that does not exist if the observation has none.
NodeView find_node(const Observation& observation, absl::string_view name);

// Returns whether the session runs and has a plan in force.
bool has_begun(const Observation& observation);

}  // namespace gleaner::reconcile
