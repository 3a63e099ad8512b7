// The actions of gleaner-cluster, one per command (cli/cluster_commands.h).
#pragma once

#include "absl/status/status.h"
#include "cli/cluster_commands.h"
#include "cli/plan_flags.h"
#include "cli/topology_command_flags.h"

namespace gleaner::cli {

// Lists the local jobs of this user and the jobs of a cluster, or shows the details of one of the cluster's jobs.
absl::Status run_status(const ClusterFlags& flags);
// Prints the load of each machine of a running job, the limit of a step, and the gain of one more summer.
absl::Status run_explain(const ClusterFlags& flags);
// Prints the spare resources of machines, and the performance of jobs.
absl::Status run_top(const ClusterFlags& flags);
// Prints the kubectl commands that show a job's logs.
absl::Status run_logs(const ClusterFlags& flags);
// Prints the decisions that the operator's autoscaler would have made for recorded series.
absl::Status run_autoscale(const AutoscaleFlags& flags);
// Prints the plan that a job would get from the spare resources of the cluster.
absl::Status run_job_plan(const PlanFlags& flags);
// Prints the groups of a cluster's nodes, or its network as `gleaner topology FILE` does.
absl::Status run_cluster_topology(const TopologyCommandFlags& flags);

}  // namespace gleaner::cli
