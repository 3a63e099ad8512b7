// Cluster is the operator's view of the cluster, from caches of jobs, pods, nodes, profiles and plans, and of the
// objects that jobs need all the time: the bootstrap ConfigMaps of namespaces, and the Services of jobs.
//
// Thread safe. Every change of a job, or of an object that a job owns, adds the job's key to the queue. Every change
// that ObjectRepair (object_repair.h) has to look at adds a key of ObjectRepair to the repairs.
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
#include "common/api/topology.h"
#include "common/api/training_job.h"
#include "common/base/env.h"
#include "common/kube/cache.h"
#include "common/kube/work_queue.h"
#include "common/placement/fleet.h"
#include "common/placement/placement.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/pod_view.h"
#include "operator/service/fabric_cache.h"

namespace gleaner::operation {

// The key of ObjectRepair for the Topology. No namespace has such a name.
inline constexpr char kTopologyKey[] = ":topology";

// A ConfigMap kBootstrapConfigMap.
struct BootstrapView {
  std::string ns;
  std::string ca;        // PEM; empty: the ConfigMap has none
  bool is_ours = false;  // it has the operator's label
};

class Cluster {
 public:
  // `watch`: the one namespace to watch; empty: all. All references must outlive the Cluster.
  // `levels`: of node labels, widest first.
  Cluster(const Env& env, kube::Client& client, kube::WorkQueue& queue, kube::WorkQueue& repairs,
          const std::string& watch, placement::LabelLevels levels = placement::default_label_levels());

  bool wait_synced(absl::Duration timeout) const;

  std::shared_ptr<const api::TrainingJob> job(const std::string& key) const { return jobs_->get(key); }
  std::vector<std::shared_ptr<const api::TrainingJob>> jobs() const { return jobs_->list(); }
  bool has_jobs(const std::string& ns) const { return !jobs_->by_index(ns).empty(); }
  std::vector<std::shared_ptr<const api::NodeProfile>> profiles() const { return profiles_->list(); }
  std::shared_ptr<const reconcile::PodView> pod(const std::string& key) const { return pods_->get(key); }
  std::shared_ptr<const api::Topology> topology() const { return topologies_->get(api::kTopologyName); }
  // Returns the network of the cluster, by the labels of nodes, the uplinks of topology() and what agents measure.
  std::shared_ptr<const fabric::Fabric> fabric() const { return fabric_.get(); }
  FabricCache& measured_fabric() const { return fabric_; }
  // Returns null if the namespace has no bootstrap ConfigMap.
  std::shared_ptr<const BootstrapView> bootstrap(const std::string& ns) const;
  std::vector<std::shared_ptr<const BootstrapView>> bootstraps() const { return bootstraps_->list(); }
  // Returns the Service with this key; null if there is none with the label of a job.
  std::shared_ptr<const kube::Object> service(const std::string& key) const { return services_->get(key); }

  std::vector<std::shared_ptr<const placement::Machine>> machines() const ABSL_LOCKS_EXCLUDED(fleet_mutex_);

  // Returns the machines that could take a summer of `job`, best first, given the nodes of its workers.
  std::vector<placement::Candidate> candidates(const api::TrainingJob& job,
                                               const std::vector<std::string>& worker_nodes) const;

  // Returns the job's objects and their nodes, without the candidates, the session and the scaling request.
  reconcile::Observation observe(const api::TrainingJob& job) const;

 private:
  void watch_needed_objects(const Env& env, kube::Client& client, kube::WorkQueue& repairs, const std::string& watch);
  void watch_topology(const Env& env, kube::Client& client, kube::WorkQueue& repairs);
  reconcile::NodeView node(const std::string& name) const;
  void place(const reconcile::PodView& summer, bool there) ABSL_LOCKS_EXCLUDED(fleet_mutex_);

  const Env env_;
  mutable absl::Mutex fleet_mutex_;
  // Nodes, profiles and summers. The caches' threads update it.
  placement::Fleet fleet_ ABSL_GUARDED_BY(fleet_mutex_){placement::Fleet::Taints::kRefuse};
  mutable FabricCache fabric_;
  std::unique_ptr<kube::Cache<api::TrainingJob>> jobs_;
  std::unique_ptr<kube::Cache<reconcile::PodView>> pods_;
  std::unique_ptr<kube::Cache<placement::Node>> nodes_;
  std::unique_ptr<kube::Cache<api::NodeProfile>> profiles_;
  std::unique_ptr<kube::Cache<api::ReductionPlan>> plans_;
  std::unique_ptr<kube::Cache<BootstrapView>> bootstraps_;
  std::unique_ptr<kube::Cache<kube::Object>> services_;
  std::unique_ptr<kube::Cache<api::Topology>> topologies_;
};

}  // namespace gleaner::operation
