// AnnouncedRegions records which of this side's memory regions the peer knows. Pure. It allocates only while the number
// of regions grows.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class AnnouncedRegions {
 public:
  // Records that the region with this index in the lane's domain (lane 0: the link's) is announced to the peer.
  // `number` is unique among all regions that have had this index (Region::number()). Returns false if the peer knows
  // the region already.
  bool add(uint16_t lane, uint32_t index, uint64_t number) {
    std::vector<uint64_t>& numbers = by_lane_[lane];
    if (numbers.size() <= index) numbers.resize(index + 1);
    return std::exchange(numbers[index], number) != number;
  }

 private:
  std::array<std::vector<uint64_t>, kMostLanes + 1> by_lane_;  // number of the region by index; 0: none
};

}  // namespace gleaner::transport::rdma
