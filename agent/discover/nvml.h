// Reads GPUs from NVIDIA's management library (NVML). The library comes with the driver, so the agent opens it at run
// time and does not link it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/api/node_profile.h"

namespace gleaner::discover {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// Returns uuid, model, PCI address and memory of each GPU, but no NUMA node. Opens and closes the library within the
// call, so that the driver can be replaced while the agent runs. NotFound: there is no such library. Unavailable: the
// library does not work (there is no driver, or a driver of another version).
absl::StatusOr<std::vector<api::Gpu>> read_nvml_gpus(const std::string& library);

}  // namespace gleaner::discover
