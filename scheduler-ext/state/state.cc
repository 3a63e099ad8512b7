#include "scheduler-ext/state/state.h"

#include <utility>

namespace gleaner::extender {

using placement::Machine;
using placement::Pod;

State::State(const Clock& clock, double min_bits_per_second)
    : clock_(clock), min_bits_per_second_(min_bits_per_second) {}

void State::set_node(std::shared_ptr<const placement::Node> node) {
  absl::MutexLock lock(&mutex_);
  fleet_.set_node(std::move(node));
}

void State::remove_node(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  fleet_.remove_node(name);
}

void State::set_profile(std::shared_ptr<const api::NodeProfile> profile) {
  absl::MutexLock lock(&mutex_);
  fleet_.set_profile(std::move(profile));
}

void State::remove_profile(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  fleet_.remove_profile(name);
}

void State::set_pod(std::shared_ptr<const Pod> pod) {
  absl::MutexLock lock(&mutex_);
  if (!pod->node.empty() || pod->finished) promises_.erase(pod->key);
  fleet_.set_pod(std::move(pod));
}

void State::remove_pod(absl::string_view key) {
  absl::MutexLock lock(&mutex_);
  promises_.erase(key);
  fleet_.remove_pod(key);
}

void State::promise(const Pod& pod, const std::string& node, double bits_per_second) {
  const absl::Duration now = clock_.since_start();
  absl::MutexLock lock(&mutex_);
  absl::erase_if(promises_, [now](const auto& entry) { return entry.second.until <= now; });
  promises_[pod.key] = {pod.job, node, pod.cpus, bits_per_second, now + kPromiseLife};
}

placement::SummerRequest State::request_of(const Pod& pod) const {
  placement::SummerRequest request;
  request.job = pod.job;
  request.cpus = pod.cpus;
  request.memory_bytes = pod.memory_bytes;
  request.min_bits_per_second = min_bits_per_second_;
  request.max_bits_per_second = pod.bits_per_second;
  for (std::string& node : fleet_.worker_nodes(pod.job)) request.worker_nodes.insert(std::move(node));
  for (std::string& node : fleet_.summer_nodes(pod.job)) request.summer_nodes.insert(std::move(node));
  return request;
}

Snapshot State::take_snapshot(const Pod& pod, const std::vector<std::string>& names) const {
  const absl::Duration since_start = clock_.since_start();
  Snapshot snapshot;
  snapshot.now = clock_.now();
  snapshot.machines.reserve(names.size());
  absl::flat_hash_map<std::string, placement::Commitment> promised;
  {
    absl::ReaderMutexLock lock(&mutex_);
    snapshot.known = fleet_.profiles() > 0;
    for (const std::string& name : names) snapshot.machines.push_back(fleet_.machine(name));
    if (pod.role == "worker") {
      for (const std::string& node : fleet_.worker_nodes(pod.job)) {
        if (auto machine = fleet_.machine(node)) snapshot.placed.push_back(std::move(machine));
      }
      return snapshot;
    }
    snapshot.request = request_of(pod);
    for (const auto& [key, promise] : promises_) {
      if (promise.until <= since_start || key == pod.key) continue;
      if (promise.job == pod.job) snapshot.request.summer_nodes.insert(promise.node);
      placement::Commitment& commitment = promised[promise.node];
      ++commitment.summers;
      commitment.summer_cpus += promise.cpus;
      commitment.summer_bits_per_second += promise.bits_per_second;
    }
  }
  if (promised.empty()) return snapshot;
  for (auto& machine : snapshot.machines) {
    if (machine == nullptr) continue;
    const auto commitment = promised.find(machine->name);
    if (commitment == promised.end()) continue;
    auto taken = std::make_shared<Machine>(*machine);
    taken->commitment.summers += commitment->second.summers;
    taken->commitment.summer_cpus += commitment->second.summer_cpus;
    taken->commitment.summer_bits_per_second += commitment->second.summer_bits_per_second;
    machine = std::move(taken);
  }
  return snapshot;
}

}  // namespace gleaner::extender
