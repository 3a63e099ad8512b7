// What the operator sees of the cluster: caches of jobs, pods, nodes, profiles and plans, and the questions it has for
// them.
//
// Thread safe. Every change of a job, or of something that a job owns, puts the job's key into the queue.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "common/kube/cache.h"
#include "common/kube/work_queue.h"
#include "operator/placement/fleet.h"
#include "operator/placement/placement.h"
#include "operator/reconcile/decide.h"
#include "operator/reconcile/pod_view.h"
#include "operator/types/node_profile.h"
#include "operator/types/reduction_plan.h"
#include "operator/types/training_job.h"

namespace gleaner::operation {

class Cluster {
 public:
  // `watch`: one namespace, or empty for all. `client` and `queue` outlive it.
  Cluster(const Env& env, kube::Client& client, kube::WorkQueue& queue, const std::string& watch);

  bool wait_synced(absl::Duration timeout) const;

  std::shared_ptr<const types::TrainingJob> job(const std::string& key) const { return jobs_->get(key); }
  std::vector<std::shared_ptr<const types::TrainingJob>> jobs() const { return jobs_->list(); }
  bool has_jobs(const std::string& ns) const { return !jobs_->by_index(ns).empty(); }
  std::vector<std::shared_ptr<const types::NodeProfile>> profiles() const { return profiles_->list(); }
  std::shared_ptr<const reconcile::PodView> pod(const std::string& key) const { return pods_->get(key); }

  std::vector<std::shared_ptr<const placement::Machine>> machines() const ABSL_LOCKS_EXCLUDED(fleet_mutex_);

  // Everything but the session's part of what decide() needs.
  reconcile::Observed observe(const types::TrainingJob& job) const;

 private:
  std::vector<placement::Candidate> candidates(const types::TrainingJob& job,
                                               const std::vector<std::string>& worker_nodes) const;
  reconcile::NodeView node(const std::string& name) const;
  void place(const reconcile::PodView& summer, bool there) ABSL_LOCKS_EXCLUDED(fleet_mutex_);

  const Env env_;
  mutable absl::Mutex fleet_mutex_;
  // Nodes, profiles and summers; the caches' threads write it.
  placement::Fleet fleet_ ABSL_GUARDED_BY(fleet_mutex_){placement::Fleet::Taints::kRefuse};
  std::unique_ptr<kube::Cache<types::TrainingJob>> jobs_;
  std::unique_ptr<kube::Cache<reconcile::PodView>> pods_;
  std::unique_ptr<kube::Cache<placement::Node>> nodes_;
  std::unique_ptr<kube::Cache<types::NodeProfile>> profiles_;
  std::unique_ptr<kube::Cache<types::ReductionPlan>> plans_;
};

}  // namespace gleaner::operation
