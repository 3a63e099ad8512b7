// By which of its queue pairs a connection's next payload shall come: the one where it would be there first, reckoning
// with what is on the way already. So payloads are shared out by bandwidth: by what each path is said to have at first,
// and by what it really has once there is more to come than is let through. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class Stripe {
 public:
  // From now on payloads may come by this lane. 0 is the connection's own link, by which they come while there is none.
  void open(size_t path, uint64_t bits_per_second) {
    if (paths_[path].bits_per_second == 0 && bits_per_second > 0) ++lanes_;
    paths_[path].bits_per_second = bits_per_second;
    end_ = std::max(end_, path + 1);
  }

  size_t choose(uint64_t bytes) const {
    size_t best = 0;
    double least = 0;
    for (size_t i = 0; i < end_; ++i) {
      if (paths_[i].bits_per_second == 0) continue;
      const double done = static_cast<double>(paths_[i].bytes + bytes) / static_cast<double>(paths_[i].bits_per_second);
      if (least > 0 && done >= least) continue;
      best = i;
      least = done;
    }
    return best;
  }

  void started(size_t path, uint64_t bytes) { paths_[path].bytes += bytes; }
  void done(size_t path, uint64_t bytes) { paths_[path].bytes -= bytes; }
  size_t paths() const { return std::max<size_t>(1, lanes_); }

 private:
  struct Path {
    uint64_t bits_per_second = 0;
    uint64_t bytes = 0;  // on the way
  };
  std::array<Path, kMostLanes + 1> paths_;
  size_t end_ = 1;
  size_t lanes_ = 0;
};

}  // namespace gleaner::transport::rdma
