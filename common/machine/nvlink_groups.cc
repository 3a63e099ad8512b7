#include "common/machine/nvlink_groups.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace gleaner::machine {
namespace {

class DirectLinks {
 public:
  DirectLinks(uint32_t gpus, const std::vector<DirectLink>& links) : bandwidths_(gpus, Row(gpus)) {
    for (const DirectLink& link : links) bandwidths_[link.a][link.b] = bandwidths_[link.b][link.a] = link.bandwidth;
  }

  bool joins(uint32_t a, uint32_t b) const { return bandwidths_[a][b].is_known(); }

  // Returns the group that grows from `first` among `free`.
  NvlinkGroup grow(uint32_t first, const std::vector<uint32_t>& free) const {
    NvlinkGroup group{.gpus = {first}, .is_direct = true};
    std::vector<uint32_t> candidates = joined_to(first, free);
    while (!candidates.empty()) {
      uint32_t next = candidates.front();
      for (const uint32_t candidate : candidates) {
        if (joined_to(candidate, candidates).size() > joined_to(next, candidates).size()) next = candidate;
      }
      group.gpus.push_back(next);
      candidates = joined_to(next, candidates);
    }
    std::sort(group.gpus.begin(), group.gpus.end());
    set_bandwidth(group);
    return group;
  }

 private:
  using Row = std::vector<Bandwidth>;

  std::vector<uint32_t> joined_to(uint32_t gpu, const std::vector<uint32_t>& others) const {
    std::vector<uint32_t> joined;
    std::copy_if(others.begin(), others.end(), std::back_inserter(joined),
                 [&](uint32_t other) { return joins(gpu, other); });
    return joined;
  }

  void set_bandwidth(NvlinkGroup& group) const {
    double least = 0;
    for (const uint32_t a : group.gpus) {
      for (const uint32_t b : group.gpus) {
        if (a == b) continue;
        const Bandwidth& bandwidth = bandwidths_[a][b];
        if (least == 0 || bandwidth.bits_per_second < least) least = bandwidth.bits_per_second;
        group.bandwidth.is_assumed |= bandwidth.is_assumed;
      }
    }
    group.bandwidth.bits_per_second = least * static_cast<double>(group.gpus.size() - 1);
  }

  std::vector<Row> bandwidths_;
};

bool is_better(const NvlinkGroup& a, const NvlinkGroup& b) {
  if (a.gpus.size() != b.gpus.size()) return a.gpus.size() > b.gpus.size();
  return a.bandwidth.bits_per_second > b.bandwidth.bits_per_second;
}

}  // namespace

DirectGroups group_by_direct_links(uint32_t gpus, const std::vector<DirectLink>& links) {
  const DirectLinks direct(gpus, links);
  DirectGroups result;
  std::vector<uint32_t> free;
  std::vector<std::optional<size_t>> group_of(gpus);
  for (uint32_t gpu = 0; gpu < gpus; ++gpu) free.push_back(gpu);
  while (!free.empty()) {
    NvlinkGroup best = direct.grow(free.front(), free);
    for (const uint32_t first : free) {
      if (NvlinkGroup group = direct.grow(first, free); is_better(group, best)) best = std::move(group);
    }
    if (best.gpus.size() < 2) break;
    std::erase_if(free, [&](uint32_t gpu) { return std::binary_search(best.gpus.begin(), best.gpus.end(), gpu); });
    for (const uint32_t gpu : best.gpus) group_of[gpu] = result.groups.size();
    result.groups.push_back(std::move(best));
  }
  for (const DirectLink& link : links) {
    if (!group_of[link.a].has_value() || group_of[link.a] != group_of[link.b]) ++result.links_between;
  }
  return result;
}

}  // namespace gleaner::machine
