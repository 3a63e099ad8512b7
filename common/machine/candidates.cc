#include "common/machine/candidates.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text_table.h"

namespace gleaner::machine {
namespace {

constexpr char kUnable[] =
    "Gleaner does not go this way yet: its GPUs reduce-scatter, or each copies its gradient to host memory";
constexpr char kMigAlone[] = "instances of GPUs in MIG mode can't reach the memory of other GPUs";
constexpr char kNothingSent[] = "the worker sends nothing to other workers, so no NIC carries a gradient";

std::vector<uint32_t> all_gpus(const Machine& machine) {
  std::vector<uint32_t> gpus(machine.gpus.size());
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

bool is_at_nic(const Machine& machine, const Gpu& gpu) { return gpu.at.has_value() && has_nic(machine, *gpu.at); }

bool has_mig(const Machine& machine) {
  return std::any_of(machine.gpus.begin(), machine.gpus.end(), [](const Gpu& gpu) { return gpu.is_mig; });
}

// Returns the number of switches with GPUs, and of GPUs with lanes of their own.
size_t count_places(const Machine& machine) {
  const SwitchCounts counts = count_switches(machine);
  const auto alone = std::count_if(machine.gpus.begin(), machine.gpus.end(), [](const Gpu& gpu) { return !gpu.at; });
  return counts.with_nic + counts.without_nic + static_cast<size_t>(alone);
}

bool spans_nodes(const Machine& machine) {
  return std::any_of(machine.gpus.begin(), machine.gpus.end(), [&](const Gpu& gpu) {
    return gpu.numa_node >= 0 && machine.gpus.front().numa_node >= 0 && gpu.numa_node != machine.gpus.front().numa_node;
  });
}

// Returns each NIC's part of the machine's traffic: NICs are loaded in proportion to their bandwidth.
std::vector<double> parts_of_nics(const Machine& machine, const std::vector<uint32_t>& nics) {
  double sum = 0;
  for (const uint32_t nic : nics) sum += machine.nics[nic].bandwidth.bits_per_second;
  std::vector<double> parts(nics.size());
  for (size_t i = 0; i < nics.size(); ++i) parts[i] = machine.nics[nics[i]].bandwidth.bits_per_second / sum;
  return parts;
}

std::vector<uint32_t> all_nics(const Machine& machine) {
  std::vector<uint32_t> nics(machine.nics.size());
  std::iota(nics.begin(), nics.end(), 0);
  return nics;
}

void send_from_host(const Machine& machine, Loads& loads, double share) {
  const std::vector<uint32_t> nics = all_nics(machine);
  const std::vector<double> parts = parts_of_nics(machine, nics);
  for (const uint32_t nic : nics) loads.send_from_host(nic, share * parts[nic]);
}

// Adds the NVLink's part of a sum of these GPUs at roots, of which each makes a share. Each two GPUs exchange the
// shares of both: a root receives its share of all others, and sends it to all others. With equal shares at all GPUs
// this is a reduce-scatter and an all-gather. Without an NVSwitch the busiest of a GPU's links counts, and the
// bandwidth of links to other GPUs is idle.
void sum_by_nvlink(const NvlinkGroup& group, const std::vector<uint32_t>& gpus, const std::vector<double>& share_of_gpu,
                   Loads& loads) {
  for (const uint32_t gpu : gpus) {
    double sum = 0, most = 0;
    for (const uint32_t other : gpus) {
      if (other == gpu) continue;
      const double exchanged = share_of_gpu[gpu] + share_of_gpu[other];
      sum += exchanged;
      most = std::max(most, exchanged);
    }
    loads.add_nvlink(gpu, group.is_direct ? most * static_cast<double>(group.gpus.size() - 1) : sum);
  }
}

void finish(Candidate& candidate, const Loads& loads, const Step& step) {
  candidate.links = loads.links(step.gradient_bytes);
  for (size_t i = 0; i < candidate.links.size(); ++i) {
    const double seconds = candidate.links[i].seconds();
    if (seconds <= candidate.seconds) continue;
    candidate.seconds = seconds;
    candidate.busiest = i;
  }
}

std::string names_of(const Machine& machine, const std::vector<uint32_t>& gpus) {
  return absl::StrJoin(gpus, ", ",
                       [&](std::string* text, uint32_t gpu) { absl::StrAppend(text, machine.gpus[gpu].name); });
}

// Eq. 8 with x = 1.
Candidate copy(const Machine& machine, const Step& step) {
  Candidate candidate{.way = Way::kCopy};
  Loads loads(machine);
  for (const uint32_t gpu : all_gpus(machine)) loads.copy_to_host(gpu, 1);
  send_from_host(machine, loads, step.network_share);
  candidate.why = has_mig(machine) ? "GPUs in MIG mode exchange nothing, so each instance copies its gradient."
                  : machine.gpus.size() == 1 ? "A machine with one GPU has nothing to sum before the copy."
                                             : "GPUs exchange nothing, so only the copies load the PCIe links.";
  finish(candidate, loads, step);
  return candidate;
}

// GPUs that do not compete with a NIC for the link of a switch.
struct FreeGpus {
  std::vector<uint32_t> all;
  std::vector<uint32_t> near;  // on the NUMA node of a NIC, as GPU 2 of Fig. 8
};

FreeGpus free_gpus(const Machine& machine) {
  FreeGpus free;
  for (const uint32_t gpu : all_gpus(machine)) {
    if (is_at_nic(machine, machine.gpus[gpu])) continue;
    free.all.push_back(gpu);
    const int node = machine.gpus[gpu].numa_node;
    const auto is_near = [&](const Nic& nic) { return node >= 0 && nic.numa_node == node; };
    if (std::any_of(machine.nics.begin(), machine.nics.end(), is_near)) free.near.push_back(gpu);
  }
  return free;
}

std::string words_of_roots(const Machine& machine, const std::vector<uint32_t>& roots) {
  const bool is_one = roots.size() == 1;
  return absl::StrCat("The ", is_one ? "root is " : "roots are, in turn, ", names_of(machine, roots),
                      is_one ? ", which shares" : ", which share",
                      " no PCIe switch with a NIC, so the NIC has its switch's link to the CPU for itself.");
}

Candidate roots(const Machine& machine, const Step& step) {
  Candidate candidate{.way = Way::kRoots, .unable = kUnable};
  const FreeGpus free = free_gpus(machine);
  if (machine.gpus.size() < 2) {
    candidate.impossible = "the machine has one GPU";
  } else if (nvlink_of(machine, all_gpus(machine)) == nullptr) {
    candidate.impossible = "no NVLink joins all GPUs, and copies between GPUs across PCIe switches are slow";
  } else if (step.network_share == 0) {
    candidate.impossible = kNothingSent;
  } else if (free.all.size() == machine.gpus.size()) {
    candidate.impossible = "no GPU shares a PCIe switch with a NIC, so no GPU is a better root than others";
  } else if (free.all.empty()) {
    candidate.impossible = "every GPU shares a PCIe switch with a NIC, so no GPU is a better root than others";
  }
  if (!candidate.is_possible()) return candidate;
  candidate = with_roots(machine, step, free.all);
  if (!free.near.empty()) {
    Candidate near = with_roots(machine, step, free.near);
    if (near.seconds <= candidate.seconds) candidate = std::move(near);
  }
  candidate.why = words_of_roots(machine, candidate.roots);
  return candidate;
}

Candidate reduce_scatter(const Machine& machine, const Step& step) {
  Candidate candidate{.way = Way::kReduceScatter, .unable = kUnable};
  const auto count = static_cast<double>(machine.gpus.size());
  if (machine.gpus.size() < 2) {
    candidate.impossible = "the machine has one GPU";
    return candidate;
  }
  Loads loads(machine);
  if (const NvlinkGroup* group = nvlink_of(machine, all_gpus(machine)); group != nullptr) {
    candidate.unable.clear();
    sum_by_nvlink(*group, all_gpus(machine), std::vector<double>(machine.gpus.size(), 1 / count), loads);
    candidate.why = "NVLink sums, and every GPU copies an equal part, so all PCIe switches carry the same.";
  } else {
    // A ring passes each GPU's link, and leaves and enters each switch once.
    const double ring = 2 * (count - 1) / count;
    const bool is_split = count_places(machine) > 1;
    for (const uint32_t gpu : all_gpus(machine)) loads.add_gpu(gpu, ring);
    const std::vector<std::vector<uint32_t>> gpus = gpus_by_switch(machine);
    for (uint32_t at = 0; is_split && at < gpus.size(); ++at) {
      if (!gpus[at].empty()) loads.add_switch(at, ring);
    }
    if (is_split) loads.add_across(ring);
    if (spans_nodes(machine)) loads.add_interconnect(ring);
    candidate.why = is_split ? "The ring of all GPUs also crosses PCIe switches, where copies between GPUs are slow."
                             : "All GPUs are at one PCIe switch, so none of their exchange leaves it.";
  }
  for (const uint32_t gpu : all_gpus(machine)) loads.copy_to_host(gpu, 1 / count);
  send_from_host(machine, loads, step.network_share);
  finish(candidate, loads, step);
  return candidate;
}

Loads cpu_assisted_loads(const Machine& machine, const Step& step, double brute_force_share) {
  Loads loads(machine);
  const double y = 1 - brute_force_share;
  for (const uint32_t gpu : all_gpus(machine)) {
    if (!machine.gpus[gpu].at.has_value()) loads.copy_to_host(gpu, 1);
  }
  for (const std::vector<uint32_t>& gpus : gpus_by_switch(machine)) {
    const auto n = static_cast<double>(gpus.size());
    // Reduce-scatter and all-gather: steps 1 and 6 of §4.2.1. The rest of Eq. 9 are the copies.
    const NvlinkGroup* group = nvlink_of(machine, gpus);
    if (group != nullptr) sum_by_nvlink(*group, gpus, std::vector<double>(machine.gpus.size(), y / n), loads);
    for (const uint32_t gpu : gpus) {
      if (group == nullptr) loads.add_gpu(gpu, 2 * (n - 1) / n * y);
      loads.copy_to_host(gpu, y / n + brute_force_share);
    }
  }
  send_from_host(machine, loads, step.network_share);
  return loads;
}

Candidate cpu_assisted(const Machine& machine, const Step& step) {
  Candidate candidate{.way = Way::kCpuAssisted, .unable = kUnable};
  const std::vector<std::vector<uint32_t>> gpus = gpus_by_switch(machine);
  if (std::none_of(gpus.begin(), gpus.end(), [](const auto& at) { return at.size() > 1; })) {
    candidate.impossible = "no PCIe switch is known to have two GPUs";
    return candidate;
  }
  candidate.why =
      "GPUs at the same PCIe switch sum first, so its link to the CPU carries one gradient, and no GPU copies to a GPU "
      "at another switch.";
  finish(candidate, cpu_assisted_loads(machine, step, 0), step);
  return candidate;
}

Candidate gpu_direct(const Machine& machine, const Step& step) {
  Candidate candidate{.way = Way::kGpuDirect, .unable = kUnable};
  const std::vector<std::vector<uint32_t>> gpus = gpus_by_switch(machine);
  std::vector<uint32_t> nics;
  for (uint32_t nic = 0; nic < machine.nics.size(); ++nic) {
    const Nic& found = machine.nics[nic];
    if (found.is_rdma && found.at.has_value() && !gpus[*found.at].empty()) nics.push_back(nic);
  }
  const NvlinkGroup* group = nvlink_of(machine, all_gpus(machine));
  if (step.network_share == 0) {
    candidate.impossible = kNothingSent;
  } else if (nics.empty()) {
    candidate.impossible = "no GPU is known to share a PCIe switch with an RDMA NIC";
  } else if (group == nullptr && count_places(machine) > 1) {
    candidate.impossible = "no NVLink joins all GPUs, and some are not at the NIC's PCIe switch";
  }
  if (!candidate.is_possible()) return candidate;

  Loads loads(machine);
  std::vector<double> share_of_gpu(machine.gpus.size());
  const std::vector<double> parts = parts_of_nics(machine, nics);
  for (size_t i = 0; i < nics.size(); ++i) {
    const uint32_t at = *machine.nics[nics[i]].at;
    for (const uint32_t gpu : gpus[at]) share_of_gpu[gpu] += parts[i] / static_cast<double>(gpus[at].size());
    // The worker's own gradient and result pass between GPU and NIC. The rest is the traffic of the summer in this
    // machine, which sums in host memory.
    loads.add_nic(nics[i], parts[i]);
    loads.send_from_host(nics[i], (step.network_share - 1) * parts[i]);
  }
  for (const uint32_t gpu : all_gpus(machine)) {
    loads.add_gpu(gpu, share_of_gpu[gpu]);
    if (share_of_gpu[gpu] > 0) candidate.roots.push_back(gpu);
  }
  const auto count = static_cast<double>(machine.gpus.size());
  if (group != nullptr) sum_by_nvlink(*group, all_gpus(machine), share_of_gpu, loads);
  for (const uint32_t gpu : all_gpus(machine)) {
    if (group == nullptr) loads.add_gpu(gpu, 2 * (count - 1) / count);
  }
  candidate.why = absl::StrCat("NICs read and write the memory of ", names_of(machine, candidate.roots),
                               ", so gradients pass no link between a PCIe switch and a CPU.");
  finish(candidate, loads, step);
  return candidate;
}

// Returns the reason for which the machine can't be cut into sub-nodes; empty: it can.
std::string why_no_sub_nodes(const Machine& machine, const Step& step) {
  if (machine.gpus.size() < 2) return "the machine has one GPU";
  if (step.network_share == 0) return kNothingSent;
  const std::vector<std::vector<uint32_t>> gpus = gpus_by_switch(machine);
  for (const Gpu& gpu : machine.gpus) {
    const auto nics = std::count_if(machine.nics.begin(), machine.nics.end(), [&](const Nic& nic) {
      return gpu.at.has_value() && nic.at == gpu.at && nic.is_rdma;
    });
    if (nics == 0) return absl::StrCat("GPU ", gpu.name, " is not known to share a PCIe switch with an RDMA NIC");
    const size_t most = static_cast<size_t>(nics) * 2;
    if (gpus[*gpu.at].size() > most) {
      return absl::StrCat("switch ", machine.switches[*gpu.at].name, " has ", counted(gpus[*gpu.at].size(), "GPU"),
                          " for ", counted(static_cast<uint64_t>(nics), "RDMA NIC"), "; a NIC serves two at most");
    }
  }
  if (machine.gpus.size() == 2 && machine.nics.size() == 1) return "both GPUs share the machine's only NIC";
  return "";
}

// Each GPU or pair sums with those of all machines over its own NIC, so nothing passes between the sub-nodes of a
// machine but over NICs (EFLOPS §IV-A). A pair's GPUs take turns as the root at the NIC.
Candidate sub_nodes(const Machine& machine, const Step& step) {
  Candidate candidate{.way = Way::kSubNodes, .impossible = why_no_sub_nodes(machine, step), .unable = kUnable};
  if (!candidate.is_possible()) return candidate;
  Loads loads(machine);
  const std::vector<std::vector<uint32_t>> gpus = gpus_by_switch(machine);
  for (uint32_t at = 0; at < gpus.size(); ++at) {
    std::vector<uint32_t> nics;
    for (uint32_t nic = 0; nic < machine.nics.size(); ++nic) {
      if (machine.nics[nic].at == at && machine.nics[nic].is_rdma) nics.push_back(nic);
    }
    const size_t nodes = std::min(nics.size(), gpus[at].size());
    for (size_t node = 0; node < nodes; ++node) {
      loads.add_nic(nics[node], step.network_share);
      const size_t members = (gpus[at].size() - node + nodes - 1) / nodes;
      for (size_t i = node; i < gpus[at].size(); i += nodes) {
        const double as_root = step.network_share + static_cast<double>(members) - 1;
        const double as_other = static_cast<double>(members) - 1;
        loads.add_gpu(gpus[at][i], (as_root + as_other) / static_cast<double>(members));
      }
    }
  }
  candidate.why = "Each NIC serves the GPUs at its own PCIe switch, so no gradient leaves a switch but by its NIC.";
  finish(candidate, loads, step);
  return candidate;
}

}  // namespace

std::string name_of(Way way) {
  switch (way) {
    case Way::kCopy:
      return "copy";
    case Way::kRoots:
      return "roots";
    case Way::kReduceScatter:
      return "reduce-scatter";
    case Way::kCpuAssisted:
      return "cpu-assisted";
    case Way::kGpuDirect:
      return "gpu-direct";
    case Way::kSubNodes:
      return "sub-nodes";
  }
  return "";
}

std::string words_of(Way way) {
  switch (way) {
    case Way::kCopy:
      return "copy every GPU's gradient to host memory, and sum it there";
    case Way::kRoots:
      return "reduce by NVLink to GPUs away from the NIC, and broadcast from there";
    case Way::kReduceScatter:
      return "reduce-scatter and all-gather over all GPUs";
    case Way::kCpuAssisted:
      return "reduce-scatter within each PCIe switch, and sum the switches' parts in host memory";
    case Way::kGpuDirect:
      return "reduce to GPUs beside the NIC, which reads their memory (GPUDirect RDMA)";
    case Way::kSubNodes:
      return "a worker for each NIC with the GPUs beside it (sub-nodes)";
  }
  return "";
}

Candidate with_roots(const Machine& machine, const Step& step, std::vector<uint32_t> roots) {
  Candidate candidate{.way = Way::kRoots, .unable = kUnable, .roots = std::move(roots)};
  std::vector<double> share_of_gpu(machine.gpus.size());
  for (const uint32_t root : candidate.roots) share_of_gpu[root] = 1 / static_cast<double>(candidate.roots.size());
  Loads loads(machine);
  sum_by_nvlink(*nvlink_of(machine, all_gpus(machine)), all_gpus(machine), share_of_gpu, loads);
  for (const uint32_t root : candidate.roots) loads.copy_to_host(root, share_of_gpu[root]);
  send_from_host(machine, loads, step.network_share);
  finish(candidate, loads, step);
  return candidate;
}

double cpu_assisted_seconds(const Machine& machine, const Step& step, double brute_force_share) {
  Candidate candidate;
  finish(candidate, cpu_assisted_loads(machine, step, brute_force_share), step);
  return candidate.seconds;
}

std::vector<Candidate> candidates(const Machine& machine, const Step& step) {
  std::vector<Candidate> candidates = {copy(machine, step),           roots(machine, step),
                                       reduce_scatter(machine, step), cpu_assisted(machine, step),
                                       gpu_direct(machine, step),     sub_nodes(machine, step)};
  for (Candidate& candidate : candidates) {
    if (has_mig(machine) && candidate.way != Way::kCopy) {
      candidate = {.way = candidate.way, .impossible = kMigAlone, .unable = kUnable};
    }
  }
  return candidates;
}

}  // namespace gleaner::machine
