// Finds the parts of a machine: processors, NICs, GPUs, and the distances between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/discover/network.h"
#include "agent/discover/processors.h"
#include "agent/discover/tree.h"
#include "common/api/node_profile.h"

namespace gleaner::discover {

struct MachineSource {
  Tree tree{"/"};
  HwlocSource hwloc;
  std::string nvml_library;  // empty: NVML is not used
};

struct Machine {
  Processors processors;
  // The machine's NICs, and the devices that carry its default route. Leaves out the ends of pods' veth pairs, bridges
  // between pods, loopbacks, and virtual functions reserved for pods.
  std::vector<api::Nic> nics;
  std::vector<api::Gpu> gpus;
  std::vector<api::Path> paths;  // from each GPU to each NIC with a PCI address
  std::string default_device;    // carries the default route, so its counters are the machine's traffic; empty: none
  std::string without_nvml;      // as in Gpus
};

// Returns the machine. Fails only if hwloc does. Leaves out parts that sysfs does not show.
absl::StatusOr<Machine> read_machine(const MachineSource& source);

}  // namespace gleaner::discover
