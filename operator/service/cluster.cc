#include "operator/service/cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/kube/object.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/summers.h"

namespace gleaner::operation {
namespace {

// Labels of many nodes change together, for example when a tool begins to label them.
constexpr absl::Duration kNodesSettle = absl::Seconds(1);

std::string job_of(const reconcile::PodView& pod) { return absl::StrCat(pod.ns, "/", pod.job); }

template <typename T>
const T& any_of(const std::shared_ptr<const T>& before, const std::shared_ptr<const T>& after) {
  return after != nullptr ? *after : *before;
}

// Returns the pod as placement sees it. Cached pods hold no memory requests.
placement::Pod placed(const reconcile::PodView& pod) {
  placement::Pod placed;
  placed.key = absl::StrCat(pod.ns, "/", pod.name);
  placed.uid = pod.uid;
  placed.job = job_of(pod);
  placed.role = pod.role;
  placed.node = pod.node;
  placed.finished = pod.finished();
  placed.cpus = pod.cpus;
  placed.bits_per_second = pod.bits_per_second;
  return placed;
}

absl::StatusOr<BootstrapView> parse_bootstrap(const kube::Object& object) {
  return BootstrapView{
      kube::namespace_of(object), kube::text_at(object, {"data", "ca.crt"}),
      kube::text_at(object, {"metadata", "labels", reconcile::kManagedByLabel}) == reconcile::kManagedBy};
}

}  // namespace

Cluster::Cluster(const Env& env, kube::Client& client, kube::WorkQueue& queue, kube::WorkQueue& repairs,
                 const std::string& watch, placement::LabelLevels levels)
    : env_(env), fabric_(std::move(levels)) {
  using Jobs = kube::Cache<api::TrainingJob>;
  using Pods = kube::Cache<reconcile::PodView>;
  using Plans = kube::Cache<api::ReductionPlan>;
  pods_ = Pods::start(env, client,
                      {kube::pods(),
                       {watch, api::kJobLabel, ""},
                       reconcile::parse_pod,
                       [this, &queue](const Pods::Pointer& before, const Pods::Pointer& after) {
                         const reconcile::PodView& pod = any_of(before, after);
                         if (pod.role == reconcile::kSummer) place(pod, after != nullptr);
                         queue.add(job_of(pod));
                       },
                       job_of});
  jobs_ = Jobs::start(env, client,
                      {kube::training_jobs(),
                       {watch, "", ""},
                       api::parse_training_job,
                       [&queue, &repairs](const Jobs::Pointer& before, const Jobs::Pointer& after) {
                         const api::ObjectMeta& meta = any_of(before, after).meta;
                         queue.add(meta.key());
                         repairs.add(meta.key());
                         if (before == nullptr || after == nullptr) repairs.add(meta.ns);
                       },
                       [](const api::TrainingJob& job) { return job.meta.ns; }});
  plans_ = Plans::start(env, client,
                        {kube::reduction_plans(),
                         {watch, "", ""},
                         api::parse_reduction_plan,
                         [&queue](const Plans::Pointer& before, const Plans::Pointer& after) {
                           queue.add(any_of(before, after).meta.key());
                         },
                         {}});
  using Nodes = kube::Cache<placement::Node>;
  nodes_ = Nodes::start(env, client,
                        {kube::nodes(),
                         {},
                         placement::parse_node,
                         [this, &repairs](const Nodes::Pointer& before, const Nodes::Pointer& after) {
                           const bool changed =
                               after != nullptr ? fabric_.set_node(*after) : fabric_.remove_node(before->name);
                           if (changed) repairs.add_after(kTopologyKey, kNodesSettle);
                           absl::MutexLock lock(&fleet_mutex_);
                           if (after != nullptr) fleet_.set_node(after);
                           if (after == nullptr) fleet_.remove_node(before->name);
                         },
                         {}});
  using Profiles = kube::Cache<api::NodeProfile>;
  profiles_ = Profiles::start(env, client,
                              {kube::node_profiles(),
                               {},
                               api::parse_node_profile,
                               [this, &repairs](const Profiles::Pointer& before, const Profiles::Pointer& after) {
                                 const bool changed = after != nullptr ? fabric_.set_profile(after)
                                                                       : fabric_.remove_profile(before->meta.name);
                                 if (changed) repairs.add_after(kTopologyKey, kMeasurePeriod);
                                 absl::MutexLock lock(&fleet_mutex_);
                                 if (after != nullptr) fleet_.set_profile(after);
                                 if (after == nullptr) fleet_.remove_profile(before->meta.name);
                               },
                               {}});
  watch_needed_objects(env, client, repairs, watch);
  watch_topology(env, client, repairs);
}

// Watches ConfigMaps by name, for which RBAC can restrict the permission, and Services by the label of jobs.
void Cluster::watch_needed_objects(const Env& env, kube::Client& client, kube::WorkQueue& repairs,
                                   const std::string& watch) {
  using Bootstraps = kube::Cache<BootstrapView>;
  bootstraps_ = Bootstraps::start(env, client,
                                  {kube::config_maps(),
                                   {watch, "", absl::StrCat("metadata.name=", reconcile::kBootstrapConfigMap)},
                                   parse_bootstrap,
                                   [&repairs](const Bootstraps::Pointer& before, const Bootstraps::Pointer& after) {
                                     repairs.add(any_of(before, after).ns);
                                   },
                                   {}});
  using Services = kube::Cache<kube::Object>;
  services_ = Services::start(env, client,
                              {kube::services(),
                               {watch, api::kJobLabel, ""},
                               [](const kube::Object& object) -> absl::StatusOr<kube::Object> { return object; },
                               [&repairs](const Services::Pointer& before, const Services::Pointer& after) {
                                 repairs.add(kube::key_of(any_of(before, after)));
                               },
                               {}});
}

// Watches the Topology, of which administrators write the spec.
void Cluster::watch_topology(const Env& env, kube::Client& client, kube::WorkQueue& repairs) {
  using Topologies = kube::Cache<api::Topology>;
  topologies_ =
      Topologies::start(env, client,
                        {kube::topologies(),
                         {},
                         api::parse_topology,
                         [this, &repairs](const Topologies::Pointer&, const Topologies::Pointer& after) {
                           fabric_.set_uplinks(after == nullptr ? std::vector<api::StatedUplink>() : after->uplinks);
                           if (after != nullptr) fabric_.restore(after->status);
                           repairs.add(kTopologyKey);
                         },
                         {}});
}

std::shared_ptr<const BootstrapView> Cluster::bootstrap(const std::string& ns) const {
  return bootstraps_->get(kube::key_of(ns, reconcile::kBootstrapConfigMap));
}

void Cluster::place(const reconcile::PodView& summer, bool there) {
  placement::Pod pod = placed(summer);
  absl::MutexLock lock(&fleet_mutex_);
  if (there) {
    fleet_.set_pod(std::make_shared<const placement::Pod>(std::move(pod)));
  } else {
    fleet_.remove_pod(pod.key);
  }
}

bool Cluster::wait_synced(absl::Duration timeout) const {
  const absl::Duration end = env_.clock->since_start() + timeout;
  const auto left = [&] { return std::max(absl::ZeroDuration(), end - env_.clock->since_start()); };
  return jobs_->wait_synced(left()) && pods_->wait_synced(left()) && plans_->wait_synced(left()) &&
         nodes_->wait_synced(left()) && profiles_->wait_synced(left()) && bootstraps_->wait_synced(left()) &&
         services_->wait_synced(left()) && topologies_->wait_synced(left());
}

reconcile::NodeView Cluster::node(const std::string& name) const {
  const auto node = nodes_->get(name);
  if (node == nullptr) return {};
  const auto profile = profiles_->get(name);
  if (profile == nullptr) return {true, node->ready, 0, {}};
  return {true, node->ready, profile->status.bits_per_second, reconcile::rdma_speeds(profile->status)};
}

std::vector<std::shared_ptr<const placement::Machine>> Cluster::machines() const {
  absl::MutexLock lock(&fleet_mutex_);
  return fleet_.machines();
}

std::vector<placement::Candidate> Cluster::candidates(const api::TrainingJob& job,
                                                      const std::vector<std::string>& worker_nodes) const {
  const auto all = machines();
  std::vector<const placement::Machine*> pointers;
  pointers.reserve(all.size());
  for (const auto& machine : all) pointers.push_back(machine.get());
  return placement::summer_candidates(pointers, reconcile::summer_request(job, worker_nodes), env_.clock->now());
}

reconcile::Observation Cluster::observe(const api::TrainingJob& job) const {
  reconcile::Observation observation;
  observation.job = job;
  for (auto& pod : pods_->by_index(job.meta.key())) {
    if (pod->owner_uid != job.meta.uid) continue;
    if (!pod->node.empty() && !observation.nodes.contains(pod->node)) observation.nodes[pod->node] = node(pod->node);
    observation.pods.push_back(std::move(pod));
  }
  if (const auto plan = plans_->get(job.meta.key()); plan != nullptr) {
    const auto& owners = plan->meta.owners;
    if (!owners.empty() && owners.front().uid == job.meta.uid) observation.plan = *plan;
  }
  observation.fabric = fabric();
  observation.now = env_.clock->now();
  return observation;
}

}  // namespace gleaner::operation
