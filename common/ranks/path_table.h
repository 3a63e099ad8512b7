// PathTable holds the path between each two hosts of a topology, so that a search reads it instead of computing it. The
// paths are those of the cost model (collective::flow_between()). Holds 12 bytes and the path for each pair of hosts.
// Pure. Safe for concurrent use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/topology/network.h"

namespace gleaner::ranks {

class PathTable {
 public:
  explicit PathTable(const topology::Network& network);

  // Returns the channels from one host to another; empty if they are the same.
  std::span<const uint32_t> channels(uint32_t from, uint32_t to) const {
    const size_t pair = size_t{from} * hosts_ + to;
    return std::span(channels_).subspan(begin_[pair], begin_[pair + 1] - begin_[pair]);
  }
  double latency_seconds(uint32_t from, uint32_t to) const { return latency_seconds_[size_t{from} * hosts_ + to]; }

 private:
  const uint32_t hosts_;
  std::vector<uint32_t> channels_;  // by pair
  std::vector<uint32_t> begin_;     // by pair; one more at the end
  std::vector<double> latency_seconds_;
};

}  // namespace gleaner::ranks
