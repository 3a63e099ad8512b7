// Finds the parts of a machine: processors, NICs, GPUs, and the distances between them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/discover/devices.h"
#include "agent/discover/processors.h"
#include "agent/discover/tree.h"

namespace gleaner::discover {

struct MachineSource {
  Tree tree{"/"};
  HwlocSource hwloc;
  std::string nvml_library;  // empty: NVML is not used
};

struct Machine : Devices {
  Processors processors;
};

// Returns the machine. Fails only if hwloc does. Leaves out parts that sysfs does not show.
absl::StatusOr<Machine> read_machine(const MachineSource& source);

}  // namespace gleaner::discover
