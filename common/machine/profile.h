// Makes a Machine of the profile that an agent writes of a node, and lists what the profile can't tell. Pure.
//
// A profile has the PCIe switches of GPUs and NICs, their NUMA nodes, NVLinks and the speeds of NICs. It has no
// bandwidth of PCIe, so this is assumed, as is that of NVLinks where NVML does not tell it.
#pragma once

#include "common/api/node_profile.h"
#include "common/machine/machine.h"

namespace gleaner::machine {

// Returns the machine, which check() refuses if it has no GPU. Its NICs are those that carry gradients: the fastest
// RDMA devices, or without one the interface of the default route. Leaves out GPUs in MIG mode, unless all are.
Machine machine_of(const api::NodeProfileStatus& profile);

// Returns the assumed bandwidth of copies between GPUs at different switches: as much of the slowest GPU's bandwidth as
// in §4.2.1, where it is 80 of 105 Gbit/s.
double assumed_across(const Machine& machine);

}  // namespace gleaner::machine
