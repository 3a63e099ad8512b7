// GPUs as NVIDIA's management library sees them, where it is installed: it comes with the driver, so it is opened when
// the agent runs and is never linked.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/types/node_profile.h"

namespace gleaner::discover {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// Uuid, model, PCI address and memory of each GPU; NUMA nodes are not filled in. The library is opened and closed again
// within the call, so that the driver can be replaced meanwhile. NotFound: there is no such library; Unavailable: it is
// there and doesn't work (no driver, a version that doesn't fit it).
absl::StatusOr<std::vector<types::Gpu>> read_nvml_gpus(const std::string& library);

}  // namespace gleaner::discover
