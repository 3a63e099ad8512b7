#include "common/machine/profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::machine {
namespace {

bool is_behind_switch(api::PathType type) { return type == api::PathType::kPix || type == api::PathType::kPxb; }

// Returns the NICs that carry gradients.
std::vector<const api::Nic*> choose_nics(const api::NodeProfileStatus& profile) {
  double most = 0;
  for (const api::Nic& nic : profile.nics) {
    if (!nic.rdma_device.empty()) most = std::max(most, nic.bits_per_second);
  }
  std::vector<const api::Nic*> chosen;
  for (const api::Nic& nic : profile.nics) {
    if (!nic.rdma_device.empty() && nic.bits_per_second == most) chosen.push_back(&nic);
  }
  if (!chosen.empty()) return chosen;
  for (const api::Nic& nic : profile.nics) {
    if (nic.default_route) chosen.push_back(&nic);
  }
  return chosen;
}

class Builder {
 public:
  explicit Builder(const api::NodeProfileStatus& profile) : profile_(profile) {}

  Machine build() {
    for (const api::Gpu& gpu : profile_.gpus) add_gpu(gpu);
    for (const api::Nic* nic : choose_nics(profile_)) add_nic(*nic);
    join_by_nvlink();
    machine_.across = {assumed_across(machine_), true};
    list_gaps();
    return std::move(machine_);
  }

 private:
  uint32_t switch_at(const std::string& name, int numa_node) {
    const auto [found, is_new] = switches_.emplace(name, static_cast<uint32_t>(machine_.switches.size()));
    if (is_new) {
      machine_.switches.push_back({.name = name, .numa_node = numa_node, .bandwidth = {kAssumedPcie, true}});
    }
    return found->second;
  }

  void add_gpu(const api::Gpu& gpu) {
    Gpu& added = machine_.gpus.emplace_back();
    added.name = gpu.pci_address.empty() ? gpu.uuid : gpu.pci_address;
    added.numa_node = gpu.numa_node;
    added.bandwidth = {kAssumedPcie, true};
    if (!gpu.pci_switch.empty()) added.at = switch_at(gpu.pci_switch, gpu.numa_node);
  }

  void add_nic(const api::Nic& nic) {
    Nic& added = machine_.nics.emplace_back();
    added.name = nic.name;
    added.numa_node = nic.numa_node;
    const bool is_known = nic.bits_per_second > 0;
    added.bandwidth = {is_known ? nic.bits_per_second : kAssumedNic, !is_known};
    added.is_rdma = !nic.rdma_device.empty();
    if (!nic.pci_switch.empty()) {
      added.at = switch_at(nic.pci_switch, nic.numa_node);
    } else {
      join_by_paths(nic, added);
    }
  }

  // Profiles of earlier agents do not name switches, but their paths tell which GPUs share one with the NIC.
  void join_by_paths(const api::Nic& nic, Nic& added) {
    for (const api::Path& path : profile_.paths) {
      if (path.nic != nic.name || !is_behind_switch(path.type)) continue;
      for (size_t i = 0; i < profile_.gpus.size(); ++i) {
        if (profile_.gpus[i].uuid != path.gpu) continue;
        if (!machine_.gpus[i].at.has_value()) {
          machine_.gpus[i].at = switch_at(absl::StrCat("switch of ", nic.name), nic.numa_node);
        }
        added.at = machine_.gpus[i].at;
      }
    }
  }

  void join_by_nvlink() {
    std::map<int, NvlinkGroup> groups;
    for (uint32_t i = 0; i < profile_.gpus.size(); ++i) {
      if (profile_.gpus[i].nvlink_group >= 0) groups[profile_.gpus[i].nvlink_group].gpus.push_back(i);
    }
    for (auto& [number, group] : groups) {
      group.bandwidth = {kAssumedNvlink, true};
      if (group.gpus.size() > 1) machine_.nvlink.push_back(std::move(group));
    }
  }

  bool is_virtual(const std::string& name) const {
    return std::any_of(profile_.nics.begin(), profile_.nics.end(),
                       [&](const api::Nic& nic) { return nic.name == name && nic.pci_address.empty(); });
  }

  void list_gaps() {
    const auto alone =
        std::count_if(machine_.gpus.begin(), machine_.gpus.end(), [](const Gpu& gpu) { return !gpu.at; });
    if (alone > 0) {
      machine_.gaps.emplace_back(
          "GPUs without a visible PCIe switch are taken to have PCIe lanes of their own. A virtual machine may hide "
          "switches.");
    }
    if (machine_.gpus.size() > 1 && machine_.nvlink.empty()) {
      machine_.gaps.emplace_back(
          "No NVSwitch is visible, and NVLinks without one are not read: there is taken to be no NVLink.");
    }
    for (const Nic& nic : machine_.nics) {
      if (is_virtual(nic.name)) {
        machine_.gaps.push_back(absl::StrCat(
            "NIC ", nic.name, " is virtual, so its place is unknown: it is taken to have PCIe lanes of its ", "own."));
      }
    }
    if (machine_.nics.empty()) {
      machine_.gaps.emplace_back("The NIC that carries gradients is unknown, so its links carry nothing here.");
    }
  }

  const api::NodeProfileStatus& profile_;
  Machine machine_;
  std::map<std::string, uint32_t> switches_;
};

}  // namespace

double assumed_across(const Machine& machine) {
  double least = 0;
  for (const Gpu& gpu : machine.gpus) {
    const double speed = gpu.bandwidth.bits_per_second;
    if (least == 0 || speed < least) least = speed;
  }
  return least * kAssumedAcross / kAssumedPcie;
}

Machine machine_of(const api::NodeProfileStatus& profile) { return Builder(profile).build(); }

}  // namespace gleaner::machine
