#include "common/ranks/path_distances.h"

#include <algorithm>
#include <limits>

#include "common/ranks/path_table.h"

namespace gleaner::ranks {

Distances path_distances(const topology::Network& network) {
  const topology::Topology& topology = network.topology;
  const uint32_t hosts = topology.host_count();
  const PathTable paths(network);
  Distances latencies(hosts), inverse_bandwidths(hosts);
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (uint32_t from = 0; from < hosts; ++from) {
    for (uint32_t to = 0; to < hosts; ++to) {
      if (from == to) continue;
      latencies.at(from, to) = paths.latency_seconds(from, to);
      least = std::min(least, latencies.at(from, to));
      most = std::max(most, latencies.at(from, to));
      for (const uint32_t channel : paths.channels(from, to)) {
        inverse_bandwidths.at(from, to) =
            std::max(inverse_bandwidths.at(from, to), 1 / topology.bits_per_second(channel));
      }
    }
  }
  return most > least ? latencies : inverse_bandwidths;
}

}  // namespace gleaner::ranks
