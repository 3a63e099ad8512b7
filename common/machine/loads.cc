#include "common/machine/loads.h"

#include "absl/strings/str_cat.h"

namespace gleaner::machine {

std::string name_of(const Link& link) {
  switch (link.kind) {
    case LinkKind::kGpu:
      return absl::StrCat("GPU ", link.device, " - PCIe");
    case LinkKind::kSwitch:
      return absl::StrCat("switch ", link.device, " - CPU");
    case LinkKind::kNic:
      return absl::StrCat("NIC ", link.device);
    case LinkKind::kNvlink:
      return absl::StrCat("NVLink of GPU ", link.device);
    case LinkKind::kAcross:
      return "copies between GPUs across switches";
    case LinkKind::kInterconnect:
      return "interconnect of NUMA nodes";
    case LinkKind::kMemory:
      return "host memory";
  }
  return "";
}

Loads::Loads(const Machine& machine)
    : machine_(machine),
      gpus_(machine.gpus.size()),
      switches_(machine.switches.size()),
      nics_(machine.nics.size()),
      nvlink_(machine.gpus.size()) {}

int Loads::host_node() const { return machine_.nics.empty() ? -1 : machine_.nics.front().numa_node; }

void Loads::cross(int numa_node, double share) {
  if (numa_node >= 0 && host_node() >= 0 && numa_node != host_node()) interconnect_ += share;
}

void Loads::copy_to_host(uint32_t gpu, double share) {
  gpus_[gpu] += share;
  if (machine_.gpus[gpu].at.has_value()) switches_[*machine_.gpus[gpu].at] += share;
  cross(machine_.gpus[gpu].numa_node, share);
  copied_ += share;
}

void Loads::send_from_host(uint32_t nic, double share) {
  nics_[nic] += share;
  if (machine_.nics[nic].at.has_value()) switches_[*machine_.nics[nic].at] += share;
  cross(machine_.nics[nic].numa_node, share);
  sent_ += share;
}

double Loads::memory_share() const {
  // A copy writes, and the copy back reads. The sum of several contributions reads them and writes one gradient. A NIC
  // reads and writes. §4.2.1 neglects all this, as memory is faster than PCIe.
  const double summed = copied_ > 1 ? copied_ + 1 : 0;
  return 2 * copied_ + summed + 2 * sent_;
}

std::vector<Link> Loads::links(double gradient_bytes) const {
  std::vector<Link> links;
  const auto add = [&](LinkKind kind, const std::string& device, double share, const Bandwidth& bandwidth) {
    if (share > 0) links.push_back({kind, device, share * gradient_bytes, bandwidth});
  };
  for (size_t i = 0; i < gpus_.size(); ++i) {
    add(LinkKind::kGpu, machine_.gpus[i].name, gpus_[i], machine_.gpus[i].bandwidth);
  }
  for (size_t i = 0; i < switches_.size(); ++i) {
    add(LinkKind::kSwitch, machine_.switches[i].name, switches_[i], machine_.switches[i].bandwidth);
  }
  for (size_t i = 0; i < nics_.size(); ++i) {
    add(LinkKind::kNic, machine_.nics[i].name, nics_[i], machine_.nics[i].bandwidth);
  }
  for (const NvlinkGroup& group : machine_.nvlink) {
    for (const uint32_t gpu : group.gpus) {
      add(LinkKind::kNvlink, machine_.gpus[gpu].name, nvlink_[gpu], group.bandwidth);
    }
  }
  add(LinkKind::kAcross, "", across_, machine_.across);
  add(LinkKind::kInterconnect, "", interconnect_, machine_.interconnect);
  add(LinkKind::kMemory, "", memory_share(), machine_.memory);
  return links;
}

}  // namespace gleaner::machine
