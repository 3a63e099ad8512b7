// Finds the machine's NVIDIA GPUs by NVML or, without NVML, by PCI and the driver's procfs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/discover/tree.h"
#include "common/api/node_profile.h"

namespace gleaner::discover {

struct Gpus {
  std::vector<api::Gpu> list;                       // sorted by PCI address
  std::optional<std::vector<api::Nvlink>> nvlinks;  // between GPUs of `list`; nullopt: NVML was not used
  std::string without_nvml;                // the reason for which NVML was not used; empty: it was used, or not wanted
  std::vector<std::string> nvml_failures;  // as in NvmlGpus
};

// Returns the GPUs. Does not use NVML if `nvml_library` is empty. Without NVML a GPU has no memory size and
// no NVLinks, and is not known to be in MIG mode. If the driver is not loaded either, the GPU's PCI address takes the
// place of its uuid. PCI and procfs also give fields that NVML fails to read.
Gpus read_gpus(const Tree& tree, const std::string& nvml_library);

}  // namespace gleaner::discover
