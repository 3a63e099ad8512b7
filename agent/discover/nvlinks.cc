#include "agent/discover/nvlinks.h"

#include <algorithm>

namespace gleaner::discover {
namespace {

uint32_t links_to(const NvlinkEnds& ends, const api::Gpu& gpu) {
  const auto found = ends.to_devices.find(gpu.pci_address);
  return found == ends.to_devices.end() ? 0 : found->second;
}

}  // namespace

std::vector<api::Nvlink> join_by_nvlinks(const std::vector<NvlinkEnds>& ends, std::vector<api::Gpu>& gpus) {
  std::vector<api::Nvlink> nvlinks;
  std::vector<uint32_t> links_of_gpu(gpus.size());
  for (size_t a = 0; a < gpus.size(); ++a) {
    for (size_t b = a + 1; b < gpus.size(); ++b) {
      const uint32_t links = std::max(links_to(ends[a], gpus[b]), links_to(ends[b], gpus[a]));
      if (links == 0) continue;
      links_of_gpu[a] += links;
      links_of_gpu[b] += links;
      nvlinks.push_back({.gpus = {gpus[a].uuid, gpus[b].uuid},
                         .links = links,
                         .bits_per_second = links * std::max(ends[a].bits_per_second, ends[b].bits_per_second)});
    }
  }
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (ends[i].to_switches > 0) gpus[i].nvlink_group = 0;
    gpus[i].nvlink_bits_per_second = (links_of_gpu[i] + ends[i].to_switches) * ends[i].bits_per_second;
  }
  return nvlinks;
}

}  // namespace gleaner::discover
