#include "common/netsim/fleet.h"

#include <algorithm>

namespace gleaner::netsim {

double host_bits_per_second(const topology::Topology& topology, uint32_t host) {
  double out = 0, in = 0;
  for (const topology::Topology::Neighbour& next : topology.neighbours(host)) {
    out += topology.bits_per_second(next.channel);
    in += topology.bits_per_second(next.channel ^ 1);
  }
  return std::min(out, in);
}

plan::Fleet fleet_of(const topology::Topology& topology, const std::vector<uint32_t>& host_of, uint32_t workers) {
  plan::Fleet fleet;
  for (uint32_t member = 0; member < host_of.size(); ++member) {
    (member < workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second)
        .push_back(host_bits_per_second(topology, host_of[member]));
  }
  return fleet;
}

}  // namespace gleaner::netsim
