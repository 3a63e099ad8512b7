// All that the agent finds out about a machine that doesn't change from second to second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/discover/network.h"
#include "agent/discover/processors.h"
#include "agent/discover/tree.h"
#include "operator/types/node_profile.h"

namespace gleaner::discover {

struct MachineSource {
  Tree tree{"/"};
  HwlocSource hwloc;
  std::string nvml_library;  // empty: NVML isn't asked
};

struct Machine {
  Processors processors;
  // NICs of the machine, and what its default route leaves by: not the pods' ends of veth pairs, bridges between pods,
  // loopbacks, nor virtual functions that stand ready for pods.
  std::vector<types::Nic> nics;
  std::vector<types::Gpu> gpus;
  std::vector<types::Path> paths;  // of each GPU to each NIC with a PCI address
  std::string default_device;      // whose counters are the machine's traffic; empty: none
  std::string without_nvml;        // why GPUs are known by PCI only; empty: they aren't
};

// Only hwloc may fail; what sysfs lacks is left out.
absl::StatusOr<Machine> read_machine(const MachineSource& source);

}  // namespace gleaner::discover
