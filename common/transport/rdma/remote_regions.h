// RemoteRegions holds the memory regions that the peer has announced, and checks that grants stay within them. Pure. It
// trusts no data of the peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class RemoteRegions {
 public:
  // The place that a WRITE goes to.
  struct Target {
    uint64_t address = 0;
    uint32_t key = 0;  // the peer's remote key
  };

  // Records a region of the lane's domain (0: the connection's own link). It replaces an earlier region with the same
  // index. InvalidArgument: there is no such index or lane.
  absl::Status add(uint16_t lane, const RegionItem& region) {
    if (region.index >= kMaxRegions || lane > kMostLanes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the peer announced region ", region.index, " of lane ", lane, ", which can't exist"));
    }
    std::vector<RegionItem>& regions = by_lane_[lane];
    if (regions.size() <= region.index) regions.resize(region.index + 1);
    regions[region.index] = region;
    return absl::OkStatus();
  }

  // Returns the place that the grant gives to a payload of `size` bytes; needs grant.lane <= kMostLanes.
  // InvalidArgument: the place is not within a region that the peer has announced.
  absl::StatusOr<Target> find(const GrantItem& grant, size_t size) const {
    const std::vector<RegionItem>& regions = by_lane_[grant.lane];
    if (grant.region >= regions.size() || regions[grant.region].bytes < size ||
        grant.offset > regions[grant.region].bytes - size) {
      return absl::InvalidArgumentError(absl::StrCat("the peer granted ", size, " bytes at offset ", grant.offset,
                                                     " of region ", grant.region,
                                                     ", which does not exist or is too small"));
    }
    return Target{regions[grant.region].address + grant.offset, regions[grant.region].key};
  }

 private:
  std::array<std::vector<RegionItem>, kMostLanes + 1> by_lane_;  // by index in the lane's domain
};

}  // namespace gleaner::transport::rdma
