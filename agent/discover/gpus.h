// The machine's NVIDIA GPUs, by NVML, or where that is absent by what PCI and the driver's procfs say.
#pragma once

#include <string>
#include <vector>

#include "agent/discover/tree.h"
#include "operator/types/node_profile.h"

namespace gleaner::discover {

struct Gpus {
  std::vector<types::Gpu> list;  // by PCI address
  std::string without_nvml;      // why NVML did not tell; empty: it did, or there is no GPU
};

// `nvml_library` empty: it isn't asked. Without it a GPU has no memory size, and its PCI address stands for its uuid if
// the driver isn't loaded.
Gpus read_gpus(const Tree& tree, const std::string& nvml_library);

}  // namespace gleaner::discover
