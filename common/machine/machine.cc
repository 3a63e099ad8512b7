#include "common/machine/machine.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace gleaner::machine {
namespace {

absl::Status check_bandwidth(absl::string_view what, const Bandwidth& bandwidth, bool may_be_unknown = false) {
  if (std::isfinite(bandwidth.bits_per_second) && bandwidth.bits_per_second > 0) return absl::OkStatus();
  if (may_be_unknown && bandwidth.bits_per_second == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": the bandwidth is ", bandwidth.bits_per_second,
                                                 "; give bits per second above 0, or leave it out"));
}

class Checks {
 public:
  explicit Checks(const Machine& machine) : machine_(machine) {}

  absl::Status device(absl::string_view kind, const std::string& name, std::optional<uint32_t> at,
                      const Bandwidth& bandwidth) {
    const std::string what = absl::StrCat(kind, " ", quote(name));
    GLN_RETURN_IF_ERROR(check_name(absl::StrCat("the name of a ", kind), name));
    if (!names_.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two devices have the name ", quote(name), "; give each GPU, NIC and switch its own"));
    }
    if (at.has_value() && *at >= machine_.switches.size()) {
      return absl::InvalidArgumentError(absl::StrCat(what, " is at switch ", *at, ", but the machine has ",
                                                     machine_.switches.size(), " switches, numbered from 0"));
    }
    return check_bandwidth(what, bandwidth);
  }

  absl::Status group(size_t index, const NvlinkGroup& group) {
    const std::string what = absl::StrCat("NVLink group ", index);
    if (group.gpus.size() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has fewer than two GPUs; name the GPUs that it joins, or leave the group out"));
    }
    for (const uint32_t gpu : group.gpus) {
      if (gpu >= machine_.gpus.size()) {
        return absl::InvalidArgumentError(absl::StrCat(what, " has the unknown GPU ", gpu, "; the machine has ",
                                                       machine_.gpus.size(), " GPUs, numbered from 0"));
      }
      if (!grouped_.insert(gpu).second) {
        return absl::InvalidArgumentError(absl::StrCat("GPU ", quote(machine_.gpus[gpu].name),
                                                       " is twice in NVLink groups; each GPU has one place in one"));
      }
    }
    return check_bandwidth(what, group.bandwidth);
  }

 private:
  const Machine& machine_;
  std::set<std::string> names_;
  std::set<uint32_t> grouped_;
};

}  // namespace

absl::Status check(const Machine& machine) {
  if (machine.gpus.empty()) return absl::NotFoundError("the machine has no GPU, so no gradient travels inside it");
  Checks checks(machine);
  for (const Switch& node : machine.switches) {
    GLN_RETURN_IF_ERROR(checks.device("switch", node.name, std::nullopt, node.bandwidth));
  }
  for (const Gpu& gpu : machine.gpus) GLN_RETURN_IF_ERROR(checks.device("GPU", gpu.name, gpu.at, gpu.bandwidth));
  for (const Nic& nic : machine.nics) GLN_RETURN_IF_ERROR(checks.device("NIC", nic.name, nic.at, nic.bandwidth));
  for (size_t i = 0; i < machine.nvlink.size(); ++i) GLN_RETURN_IF_ERROR(checks.group(i, machine.nvlink[i]));
  GLN_RETURN_IF_ERROR(check_bandwidth("copies across switches", machine.across));
  GLN_RETURN_IF_ERROR(check_bandwidth("the interconnect of NUMA nodes", machine.interconnect, true));
  return check_bandwidth("host memory", machine.memory, true);
}

const NvlinkGroup* nvlink_of(const Machine& machine, const std::vector<uint32_t>& gpus) {
  if (gpus.size() < 2) return nullptr;
  for (const NvlinkGroup& group : machine.nvlink) {
    const auto is_in = [&](uint32_t gpu) {
      return std::find(group.gpus.begin(), group.gpus.end(), gpu) != group.gpus.end();
    };
    if (std::all_of(gpus.begin(), gpus.end(), is_in)) return &group;
  }
  return nullptr;
}

std::vector<std::vector<uint32_t>> gpus_by_switch(const Machine& machine) {
  std::vector<std::vector<uint32_t>> gpus(machine.switches.size());
  for (uint32_t i = 0; i < machine.gpus.size(); ++i) {
    if (machine.gpus[i].at.has_value()) gpus[*machine.gpus[i].at].push_back(i);
  }
  return gpus;
}

bool has_nic(const Machine& machine, uint32_t at) {
  return std::any_of(machine.nics.begin(), machine.nics.end(), [&](const Nic& nic) { return nic.at == at; });
}

SwitchCounts count_switches(const Machine& machine) {
  SwitchCounts counts;
  const std::vector<std::vector<uint32_t>> gpus = gpus_by_switch(machine);
  for (uint32_t at = 0; at < gpus.size(); ++at) {
    if (!gpus[at].empty()) ++(has_nic(machine, at) ? counts.with_nic : counts.without_nic);
  }
  return counts;
}

}  // namespace gleaner::machine
