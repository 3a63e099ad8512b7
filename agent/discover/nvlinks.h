// Joins GPUs by their NVLinks, as NVML reports them at each GPU. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/api/node_profile.h"

namespace gleaner::discover {

// The active NVLinks of a GPU over which other GPUs' memory can be reached.
struct NvlinkEnds {
  uint32_t to_switches = 0;
  std::map<std::string, uint32_t> to_devices;  // number of links by the PCI address of the device at the other end
  double bits_per_second = 0;                  // each way, of one link; 0: unknown
};

// Returns an entry for each two GPUs that NVLinks join. Sets the NVLink bandwidth of each GPU, and gives the GPUs with
// links to NVSwitches group 0: the NVSwitches of a machine join all GPUs that have links to one. `ends` are those of
// each GPU of `gpus`, which have their uuids. Links to other devices, such as POWER processors, do not count. If the
// two ends of a pair report different numbers, since NVML fails for one of them, the greater number counts.
std::vector<api::Nvlink> join_by_nvlinks(const std::vector<NvlinkEnds>& ends, std::vector<api::Gpu>& gpus);

}  // namespace gleaner::discover
