// Machine describes the paths inside one machine on which a gradient travels between its GPUs, its host memory and its
// NICs, after BytePS §4.2 (Jiang et al., OSDI 2020): GPUs and NICs at PCIe switches, the switches at CPUs, and NVLink
// between GPUs.
//
// A GPU or a NIC is at a PCIe switch, or has PCIe lanes of its own to a CPU. With switches behind switches, the one
// next to the CPU counts, since all devices below it share its link. Links are duplex, with the same bandwidth each
// way. Pure values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gleaner::machine {

// A bandwidth each way, in bits per second; 0 is unknown. An assumed bandwidth is neither measured nor stated.
struct Bandwidth {
  double bits_per_second = 0;
  bool is_assumed = false;
  bool is_known() const { return bits_per_second > 0; }
  bool operator==(const Bandwidth&) const = default;
};

// Bandwidths of the machines of BytePS, which are assumed where a machine does not state its own: copies within a PCIe
// switch (PCIe 3.0 x16) and across switches (§4.2.1), all NVLinks of a GPU (§4.2.2), and a 100 Gbit/s NIC (§4.2.1).
inline constexpr double kAssumedPcie = 105e9;
inline constexpr double kAssumedAcross = 80e9;
inline constexpr double kAssumedNvlink = 1.2e12;
inline constexpr double kAssumedOneNvlink = kAssumedNvlink / 6;  // a V100 has six
inline constexpr double kAssumedNic = 100e9;

struct Switch {
  std::string name;
  int numa_node = -1;   // -1: unknown
  Bandwidth bandwidth;  // between switch and CPU: b(S, C)
  bool operator==(const Switch&) const = default;
};

struct Gpu {
  std::string name;
  std::optional<uint32_t> at;  // index of its switch; none: it has lanes of its own to a CPU
  int numa_node = -1;          // with a switch: as the switch
  Bandwidth bandwidth;         // between GPU and switch or CPU: b(N, S)
  bool is_mig = false;         // in MIG mode: its instances reach no other GPU
  bool operator==(const Gpu&) const = default;
};

struct Nic {
  std::string name;
  std::optional<uint32_t> at;
  int numa_node = -1;
  Bandwidth bandwidth;
  bool is_rdma = false;
  bool operator==(const Nic&) const = default;
};

// GPUs that reach each other by NVLink, through NVSwitches or directly.
struct NvlinkGroup {
  std::vector<uint32_t> gpus;
  Bandwidth bandwidth;  // of all NVLinks of one GPU to the group
  // Links join each two GPUs of the group, with an equal part of the bandwidth for each other GPU. Else all of a GPU's
  // bandwidth is there for any other GPU, as with NVSwitches.
  bool is_direct = false;
  bool operator==(const NvlinkGroup&) const = default;
};

struct Machine {
  std::vector<Switch> switches;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;  // that carry gradients; empty: unknown
  std::vector<NvlinkGroup> nvlink;
  Bandwidth across;               // of a copy between GPUs that share no PCIe switch
  Bandwidth interconnect;         // between NUMA nodes; unknown: it does not limit
  Bandwidth memory;               // of host memory, reads and writes together; unknown: it does not limit
  std::vector<std::string> gaps;  // sentences: facts that are unknown, and what is taken in their place
  bool operator==(const Machine&) const = default;
};

// Checks that names are there and unique, that indexes are in range, that bandwidths of GPUs, switches, NICs and NVLink
// are known, and that each NVLink group has two GPUs or more and each GPU one group at most. InvalidArgument says what
// to change; NotFound: there is no GPU.
absl::Status check(const Machine& machine);

// Returns the group that has all these GPUs, of which there are two or more; null: there is none.
const NvlinkGroup* nvlink_of(const Machine& machine, const std::vector<uint32_t>& gpus);

// The GPUs at each switch, by the switch's index.
std::vector<std::vector<uint32_t>> gpus_by_switch(const Machine& machine);

// Counts PCIe switches that have GPUs, as §4.2.3 does.
struct SwitchCounts {
  uint32_t with_nic = 0;     // S_n: switches with GPUs and a NIC
  uint32_t without_nic = 0;  // S_g: switches with GPUs only
  // With both kinds the machine is asymmetric (rule 1), else symmetric (rule 2).
  bool is_asymmetric() const { return with_nic > 0 && without_nic > 0; }
};
SwitchCounts count_switches(const Machine& machine);

// Returns whether a NIC is at the switch.
bool has_nic(const Machine& machine, uint32_t at);

}  // namespace gleaner::machine
