#include "operator/service/cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/names.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

std::string job_of(const reconcile::PodView& pod) { return absl::StrCat(pod.ns, "/", pod.job); }

template <typename T>
const T& any_of(const std::shared_ptr<const T>& before, const std::shared_ptr<const T>& after) {
  return after != nullptr ? *after : *before;
}

double number_or(const json& object, const char* name, double otherwise) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  const auto value =
      found->is_string() ? types::parse_quantity(found->get<std::string>()) : absl::InvalidArgumentError("");
  if (value.ok()) return *value;
  return found->is_number() ? found->get<double>() : otherwise;
}

// What placement is asked for: the requests that summer_pod() makes.
placement::SummerRequest request_of(const types::TrainingJob& job) {
  placement::SummerRequest request;
  request.job = job.meta.key();
  const json& resources = job.communication.summers.resources;
  const json requests = resources.is_object() ? resources.value("requests", json::object()) : json::object();
  request.cpus = number_or(requests, "cpu", request.cpus);
  request.memory_bytes = static_cast<uint64_t>(number_or(requests, "memory", 0));
  request.max_bits_per_second = job.communication.summers.bits_per_second;
  return request;
}

}  // namespace

Cluster::Cluster(const Env& env, kube::Client& client, kube::WorkQueue& queue, const std::string& watch) : env_(env) {
  using Jobs = kube::Cache<types::TrainingJob>;
  using Pods = kube::Cache<reconcile::PodView>;
  using Plans = kube::Cache<types::ReductionPlan>;
  pods_ = Pods::start(
      env, client,
      {kube::pods(),
       {watch, types::kJobLabel, ""},
       reconcile::parse_pod,
       [&queue](const Pods::Pointer& before, const Pods::Pointer& after) { queue.add(job_of(any_of(before, after))); },
       job_of});
  jobs_ = Jobs::start(env, client,
                      {kube::training_jobs(),
                       {watch, "", ""},
                       types::parse_training_job,
                       [&queue](const Jobs::Pointer& before, const Jobs::Pointer& after) {
                         queue.add(any_of(before, after).meta.key());
                       },
                       [](const types::TrainingJob& job) { return job.meta.ns; }});
  plans_ = Plans::start(env, client,
                        {kube::reduction_plans(),
                         {watch, "", ""},
                         types::parse_reduction_plan,
                         [&queue](const Plans::Pointer& before, const Plans::Pointer& after) {
                           queue.add(any_of(before, after).meta.key());
                         },
                         {}});
  nodes_ = kube::Cache<placement::Node>::start(env, client, {kube::nodes(), {}, placement::parse_node, {}, {}});
  profiles_ = kube::Cache<types::NodeProfile>::start(env, client,
                                                     {kube::node_profiles(), {}, types::parse_node_profile, {}, {}});
}

bool Cluster::wait_synced(absl::Duration timeout) const {
  const absl::Duration end = env_.clock->since_start() + timeout;
  const auto left = [&] { return std::max(absl::ZeroDuration(), end - env_.clock->since_start()); };
  return jobs_->wait_synced(left()) && pods_->wait_synced(left()) && plans_->wait_synced(left()) &&
         nodes_->wait_synced(left()) && profiles_->wait_synced(left());
}

reconcile::NodeView Cluster::node(const std::string& name) const {
  const auto node = nodes_->get(name);
  if (node == nullptr) return {};
  const auto profile = profiles_->get(name);
  return {true, node->ready, profile == nullptr ? 0 : profile->status.bits_per_second};
}

std::vector<placement::Candidate> Cluster::candidates(const types::TrainingJob& job,
                                                      const std::vector<std::string>& worker_nodes) const {
  absl::flat_hash_map<std::string, placement::Commitment> commitments;
  for (const auto& pod : pods_->list()) {
    if (pod->role != reconcile::kSummer || pod->finished() || pod->node.empty()) continue;
    placement::Commitment& commitment = commitments[pod->node];
    commitment.summers += 1;
    commitment.summer_cpus += placement::SummerRequest{}.cpus;
    commitment.summer_bits_per_second += pod->bits_per_second;
  }
  std::vector<placement::Machine> machines;
  for (const auto& node : nodes_->list()) {
    placement::Machine machine;
    machine.name = node->name;
    machine.labels = node->labels;
    machine.schedulable = node->ready && !node->cordoned;
    machine.profile = profiles_->get(node->name);
    machine.commitment = commitments[node->name];
    machines.push_back(std::move(machine));
  }
  std::vector<const placement::Machine*> pointers;
  pointers.reserve(machines.size());
  for (const placement::Machine& machine : machines) pointers.push_back(&machine);
  placement::SummerRequest request = request_of(job);
  request.worker_nodes.insert(worker_nodes.begin(), worker_nodes.end());
  return placement::summer_candidates(pointers, request, env_.clock->now());
}

reconcile::Observed Cluster::observe(const types::TrainingJob& job) const {
  reconcile::Observed observed;
  observed.job = job;
  for (auto& pod : pods_->by_index(job.meta.key())) {
    if (pod->owner_uid == job.meta.uid) observed.pods.push_back(std::move(pod));
  }
  if (const auto plan = plans_->get(job.meta.key()); plan != nullptr) {
    const auto& owners = plan->meta.owners;
    if (!owners.empty() && owners.front().uid == job.meta.uid) observed.plan = *plan;
  }
  observed.node = [this](const std::string& name) { return node(name); };
  observed.candidates = [this, &job](const std::vector<std::string>& nodes) { return candidates(job, nodes); };
  observed.now = env_.clock->now();
  return observed;
}

}  // namespace gleaner::operation
