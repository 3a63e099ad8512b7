// Finds the NICs and GPUs of a machine, and the distances between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/discover/network.h"
#include "agent/discover/tree.h"
#include "common/api/node_profile.h"

namespace gleaner::discover {

struct Devices {
  // The machine's NICs, and the devices that carry its default route. Leaves out the ends of pods' veth pairs, bridges
  // between pods, loopbacks, and virtual functions reserved for pods.
  std::vector<api::Nic> nics;
  std::vector<api::Gpu> gpus;
  std::optional<std::vector<api::Nvlink>> nvlinks;  // as in Gpus
  std::vector<api::Path> paths;                     // from each GPU to each NIC with a PCI address
  std::string default_device;  // carries the default route, so its counters are the machine's traffic; empty: none
  std::string without_nvml;    // as in Gpus
  std::vector<std::string> nvml_failures;  // as in Gpus
};

// Returns the devices that sysfs shows. Does not use NVML if `nvml_library` is empty.
Devices read_devices(const Tree& tree, const std::string& nvml_library);

}  // namespace gleaner::discover
