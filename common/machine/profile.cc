#include "common/machine/profile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/first_few.h"
#include "common/base/text_table.h"
#include "common/machine/nvlink_groups.h"

namespace gleaner::machine {
namespace {

// Returns the GPUs between which gradients travel. A job of whole GPUs gets none in MIG mode; if all are, a job has
// instances of them.
std::vector<const api::Gpu*> choose_gpus(const api::NodeProfileStatus& profile) {
  std::vector<const api::Gpu*> all, whole;
  for (const api::Gpu& gpu : profile.gpus) {
    all.push_back(&gpu);
    if (!gpu.mig) whole.push_back(&gpu);
  }
  return whole.empty() ? all : whole;
}

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

const std::string& name_of(const api::Gpu& gpu) { return gpu.pci_address.empty() ? gpu.uuid : gpu.pci_address; }

class Builder {
 public:
  explicit Builder(const api::NodeProfileStatus& profile) : profile_(profile), gpus_(choose_gpus(profile)) {}

  Machine build() {
    for (const api::Gpu* gpu : gpus_) add_gpu(*gpu);
    for (const api::Nic* nic : choose_nics(profile_)) add_nic(*nic);
    join_by_nvswitches();
    join_by_nvlinks();
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
    added.name = name_of(gpu);
    added.numa_node = gpu.numa_node;
    added.bandwidth = {kAssumedPcie, true};
    added.is_mig = gpu.mig;
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
      for (size_t i = 0; i < gpus_.size(); ++i) {
        if (gpus_[i]->uuid != path.gpu) continue;
        if (!machine_.gpus[i].at.has_value()) {
          machine_.gpus[i].at = switch_at(absl::StrCat("switch of ", nic.name), nic.numa_node);
        }
        added.at = machine_.gpus[i].at;
      }
    }
  }

  // The GPU with the least bandwidth limits its group.
  void join_by_nvswitches() {
    std::map<int, NvlinkGroup> groups;
    for (uint32_t i = 0; i < gpus_.size(); ++i) {
      if (gpus_[i]->mig || gpus_[i]->nvlink_group < 0) continue;
      NvlinkGroup& group = groups[gpus_[i]->nvlink_group];
      const double bits_per_second = gpus_[i]->nvlink_bits_per_second;
      const bool is_least = group.gpus.empty() || bits_per_second < group.bandwidth.bits_per_second;
      if (is_least) group.bandwidth.bits_per_second = bits_per_second;
      group.gpus.push_back(i);
    }
    for (auto& [number, group] : groups) {
      if (group.gpus.size() < 2) continue;
      if (!group.bandwidth.is_known()) group.bandwidth = {kAssumedNvlink, true};
      machine_.nvlink.push_back(std::move(group));
    }
  }

  // Joins GPUs without an NVSwitch.
  void join_by_nvlinks() {
    std::vector<DirectLink> links;
    for (const api::Nvlink& nvlink : profile_.nvlinks.value_or(std::vector<api::Nvlink>())) {
      if (nvlink.gpus.size() != 2) continue;
      const std::optional<uint32_t> a = find_unswitched(nvlink.gpus[0]), b = find_unswitched(nvlink.gpus[1]);
      if (!a.has_value() || !b.has_value() || a == b) continue;
      const bool is_known = nvlink.bits_per_second > 0;
      links.push_back({*a, *b, {is_known ? nvlink.bits_per_second : nvlink.links * kAssumedOneNvlink, !is_known}});
    }
    DirectGroups direct = group_by_direct_links(static_cast<uint32_t>(gpus_.size()), links);
    std::move(direct.groups.begin(), direct.groups.end(), std::back_inserter(machine_.nvlink));
    if (direct.links_between > 0) {
      machine_.gaps.push_back(absl::StrCat(
          "NVLinks also join ", counted(direct.links_between, "pair"),
          " of GPUs of different groups. These links carry nothing here, since GPUs sum by NVLink only in a "
          "group where links join each two of them."));
    }
  }

  // Returns the index of a GPU that can use direct NVLinks.
  std::optional<uint32_t> find_unswitched(const std::string& uuid) const {
    for (uint32_t i = 0; i < gpus_.size(); ++i) {
      if (gpus_[i]->uuid == uuid && !gpus_[i]->mig && gpus_[i]->nvlink_group < 0) return i;
    }
    return std::nullopt;
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
    if (machine_.gpus.size() > 1 && machine_.nvlink.empty() && !profile_.nvlinks.has_value()) {
      machine_.gaps.emplace_back(
          "No NVSwitch is visible, and NVLinks are unknown without NVML: there is taken to be no NVLink.");
    }
    list_mig();
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

  void list_mig() {
    std::vector<std::string> left_out;
    for (const api::Gpu& gpu : profile_.gpus) {
      if (gpu.mig) left_out.push_back(name_of(gpu));
    }
    if (left_out.empty() || left_out.size() == gpus_.size()) return;
    machine_.gaps.push_back(absl::StrCat(counted(left_out.size(), "GPU"), " in MIG mode ",
                                         left_out.size() == 1 ? "is" : "are", " left out (", first_few(left_out),
                                         "): instances can't reach the memory of other GPUs."));
  }

  const api::NodeProfileStatus& profile_;
  const std::vector<const api::Gpu*> gpus_;  // those of the machine, in its order
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
