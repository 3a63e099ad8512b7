// OwnerEpochs holds the latest epoch that owners of partitions are known to follow: among CPU summers, and among
// workers' colocated summers. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace gleaner::network {

class OwnerEpochs {
 public:
  // Records that an owner follows the plan of `epoch`. Returns whether that is news: the epoch is later than the one in
  // force here, and than all that were recorded for this value of `by_rank` before.
  bool note(bool by_rank, uint32_t epoch, uint32_t in_force) {
    uint32_t& latest = latest_[by_rank ? 1 : 0];
    if (epoch <= std::max(latest, in_force)) return false;
    latest = epoch;
    return true;
  }

 private:
  std::array<uint32_t, 2> latest_{};
};

}  // namespace gleaner::network
