// Reads GPUs from NVIDIA's management library (NVML). The library comes with the driver, so the agent opens it at run
// time and does not link it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/discover/nvlinks.h"
#include "common/api/node_profile.h"

namespace gleaner::discover {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

struct NvmlGpus {
  std::vector<api::Gpu> list;       // in NVML's order
  std::vector<NvlinkEnds> nvlinks;  // of each GPU of `list`
  // Sentences about the fields and GPUs that NVML failed to read: "GPU 3 has no UUID: Unknown Error". The number is
  // NVML's index, which nvidia-smi shows.
  std::vector<std::string> failures;
};

// Returns uuid, model, PCI address, memory and MIG mode of each GPU and its NVLinks, but no NUMA node. A field that
// NVML cannot read stays empty. Leaves out a GPU that is lost, and one with neither uuid nor PCI address. Opens and
// closes the library within the call, so that the driver can be replaced while the agent runs. NotFound: there is no
// such library. Unavailable: the library does not work (there is no driver, or a driver of another version).
absl::StatusOr<NvmlGpus> read_nvml_gpus(const std::string& library);

}  // namespace gleaner::discover
