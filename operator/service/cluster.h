// Cluster is the operator's view of the cluster, from caches of jobs, pods, nodes, profiles and plans.
//
// Thread safe. Every change of a job, or of an object that a job owns, adds the job's key to the queue.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/api/node_profile.h"
#include "common/api/reduction_plan.h"
#include "common/api/training_job.h"
#include "common/base/env.h"
#include "common/kube/cache.h"
#include "common/kube/work_queue.h"
#include "common/placement/fleet.h"
#include "common/placement/placement.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/pod_view.h"

namespace gleaner::operation {

class Cluster {
 public:
  // `watch`: the one namespace to watch; empty: all. `client` and `queue` must outlive the Cluster.
  Cluster(const Env& env, kube::Client& client, kube::WorkQueue& queue, const std::string& watch);

  bool wait_synced(absl::Duration timeout) const;

  std::shared_ptr<const api::TrainingJob> job(const std::string& key) const { return jobs_->get(key); }
  std::vector<std::shared_ptr<const api::TrainingJob>> jobs() const { return jobs_->list(); }
  bool has_jobs(const std::string& ns) const { return !jobs_->by_index(ns).empty(); }
  std::vector<std::shared_ptr<const api::NodeProfile>> profiles() const { return profiles_->list(); }
  std::shared_ptr<const reconcile::PodView> pod(const std::string& key) const { return pods_->get(key); }

  std::vector<std::shared_ptr<const placement::Machine>> machines() const ABSL_LOCKS_EXCLUDED(fleet_mutex_);

  // Returns the machines that could take a summer of `job`, best first, given the nodes of its workers.
  std::vector<placement::Candidate> candidates(const api::TrainingJob& job,
                                               const std::vector<std::string>& worker_nodes) const;

  // Returns the job's objects and their nodes, without the candidates, the session and the scaling request.
  reconcile::Observation observe(const api::TrainingJob& job) const;

 private:
  reconcile::NodeView node(const std::string& name) const;
  void place(const reconcile::PodView& summer, bool there) ABSL_LOCKS_EXCLUDED(fleet_mutex_);

  const Env env_;
  mutable absl::Mutex fleet_mutex_;
  // Nodes, profiles and summers. The caches' threads update it.
  placement::Fleet fleet_ ABSL_GUARDED_BY(fleet_mutex_){placement::Fleet::Taints::kRefuse};
  std::unique_ptr<kube::Cache<api::TrainingJob>> jobs_;
  std::unique_ptr<kube::Cache<reconcile::PodView>> pods_;
  std::unique_ptr<kube::Cache<placement::Node>> nodes_;
  std::unique_ptr<kube::Cache<api::NodeProfile>> profiles_;
  std::unique_ptr<kube::Cache<api::ReductionPlan>> plans_;
};

}  // namespace gleaner::operation
