#include "common/placement/fleet.h"

#include <algorithm>
#include <utility>

namespace gleaner::placement {
namespace {

// Returns the bandwidth that placement promised to a summer. To a summer without a limit it promised the bandwidth of
// the whole machine.
double promised(const Pod& pod, const api::NodeProfile* profile) {
  if (profile == nullptr) return pod.bits_per_second;
  const double speed = profile->status.bits_per_second;
  return pod.bits_per_second > 0 ? std::min(pod.bits_per_second, speed) : speed;
}

}  // namespace

void Fleet::set_node(std::shared_ptr<const Node> node) {
  const std::string name = node->name;
  entries_[name].node = std::move(node);
  rebuild(name);
}

void Fleet::remove_node(absl::string_view name) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return;
  entry->second.node = nullptr;
  rebuild(entry->first);
}

void Fleet::set_profile(std::shared_ptr<const api::NodeProfile> profile) {
  const std::string name = profile->meta.name;
  Entry& entry = entries_[name];
  if (entry.profile == nullptr) ++profiles_;
  entry.profile = std::move(profile);
  rebuild(name);
}

void Fleet::remove_profile(absl::string_view name) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end() || entry->second.profile == nullptr) return;
  --profiles_;
  entry->second.profile = nullptr;
  rebuild(entry->first);
}

void Fleet::set_pod(std::shared_ptr<const Pod> pod) {
  const auto before = pods_.find(pod->key);
  const bool moved = before != pods_.end() && (before->second->node != pod->node || before->second->job != pod->job ||
                                               before->second->role != pod->role);
  if (moved) remove_pod(pod->key);
  if (!pod->holds_node() || pod->job.empty()) return remove_pod(pod->key);
  pods_[pod->key] = pod;
  jobs_[pod->job][pod->key] = pod;
  if (pod->role != "summer") return;
  entries_[pod->node].summers[pod->key] = pod;
  rebuild(pod->node);
}

void Fleet::remove_pod(absl::string_view key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  const std::shared_ptr<const Pod> pod = found->second;
  pods_.erase(found);
  const auto job = jobs_.find(pod->job);
  job->second.erase(pod->key);
  if (job->second.empty()) jobs_.erase(job);
  if (pod->role != "summer") return;
  entries_[pod->node].summers.erase(pod->key);
  rebuild(pod->node);
}

void Fleet::rebuild(const std::string& name) {
  const auto found = entries_.find(name);
  Entry& entry = found->second;
  if (entry.node == nullptr) {
    entry.machine = nullptr;
    if (entry.profile == nullptr && entry.summers.empty()) entries_.erase(found);
    return;
  }
  auto machine = std::make_shared<Machine>();
  machine->name = entry.node->name;
  machine->labels = entry.node->labels;
  machine->schedulable =
      entry.node->ready && !entry.node->cordoned && (taints_ == Taints::kIgnore || !entry.node->tainted);
  machine->profile = entry.profile;
  for (const auto& [key, pod] : entry.summers) {
    ++machine->commitment.summers;
    machine->commitment.summer_cpus += pod->cpus;
    machine->commitment.summer_bits_per_second += promised(*pod, entry.profile.get());
  }
  entry.machine = std::move(machine);
}

std::shared_ptr<const Machine> Fleet::machine(absl::string_view node) const {
  const auto entry = entries_.find(node);
  return entry == entries_.end() ? nullptr : entry->second.machine;
}

std::vector<std::shared_ptr<const Machine>> Fleet::machines() const {
  std::vector<std::shared_ptr<const Machine>> machines;
  machines.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) {
    if (entry.machine != nullptr) machines.push_back(entry.machine);
  }
  return machines;
}

std::vector<std::string> Fleet::worker_nodes(absl::string_view job) const { return nodes_of(job, "worker"); }
std::vector<std::string> Fleet::summer_nodes(absl::string_view job) const { return nodes_of(job, "summer"); }

std::vector<std::string> Fleet::nodes_of(absl::string_view job, absl::string_view role) const {
  std::vector<std::string> nodes;
  const auto pods = jobs_.find(job);
  if (pods == jobs_.end()) return nodes;
  for (const auto& [key, pod] : pods->second) {
    if (pod->role == role) nodes.push_back(pod->node);
  }
  return nodes;
}

}  // namespace gleaner::placement
