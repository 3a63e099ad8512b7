#include "agent/sampler.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::agent {
namespace {

std::optional<spare::Traffic> as_sample(const std::optional<discover::Traffic>& traffic) {
  if (!traffic.has_value()) return std::nullopt;
  return spare::Traffic{traffic->received_bytes, traffic->sent_bytes};
}

}  // namespace

Sampler::Sampler(discover::MachineSource source, const std::string& cgroup_root)
    : source_(std::move(source)), cgroup_root_(cgroup_root), pods_(source_.tree, cgroup_root) {}

absl::Status Sampler::discover() {
  GLN_ASSIGN_OR_RETURN(machine_, discover::read_machine(source_));
  return absl::OkStatus();
}

probe::SpeedClaims Sampler::claims() const {
  probe::SpeedClaims claims;
  for (const api::Nic& nic : machine_.nics) {
    if (!nic.default_route) continue;
    claims.sysfs = nic.bits_per_second;
    claims.driver = nic.driver;
  }
  return claims;
}

spare::Sample Sampler::sample(absl::Duration at, const publish::NodeState& node,
                              const std::vector<publish::PodOnNode>& pods, const probe::Speed& speed) {
  spare::Sample sample;
  sample.at = at;
  sample.allocatable_cpus = std::min(node.allocatable_cpus, machine_.processors.cpus);
  sample.allocatable_memory_bytes =
      std::min(node.allocatable_memory_bytes, static_cast<double>(machine_.processors.memory_bytes));
  const publish::Requests requests = publish::owners_requests(pods);
  sample.requested_cpus = requests.cpus;
  sample.requested_memory_bytes = requests.memory_bytes;
  sample.cpu_seconds = discover::read_cpu_seconds(source_.tree, cgroup_root_);
  sample.available_memory_bytes = discover::read_available_memory(source_.tree);
  sample.cpu_pressure = discover::read_cpu_pressure(source_.tree);
  sample.traffic = as_sample(discover::read_traffic(source_.tree, machine_.default_device));
  sample.claimed_bits_per_second = speed.bits_per_second;
  sample.claimed_by = speed.source;

  std::vector<std::string> uids;
  std::vector<bool> own_network;
  for (const publish::PodOnNode& pod : pods) {
    if (!pod.summer || pod.finished) continue;
    uids.push_back(pod.uid);
    own_network.push_back(!pod.host_network);
  }
  const std::vector<discover::PodUse> uses = pods_.read(uids, own_network);
  for (size_t i = 0; i < uids.size(); ++i) {
    sample.summers.push_back({uids[i], uses[i].cpu_seconds, uses[i].memory_bytes, as_sample(uses[i].traffic)});
  }
  return sample;
}

}  // namespace gleaner::agent
