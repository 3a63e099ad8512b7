// Generated clouds: hosts in racks whose links have random bandwidths and latencies, as a customer meets them who does
// not choose where virtual machines start.
#pragma once

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ranks/random.h"
#include "common/topology/topology.h"

namespace gleaner::ranks {

struct CloudShape {
  uint32_t racks = 8;
  uint32_t hosts = 8;           // in each rack
  double oversubscription = 3;  // of a rack's uplink, at most; at least 1
};

// Hosts have 25 Gbit/s; each link has a latency of 1 to 5 µs in the rack and 5 to 25 µs above. Host i is in a random
// rack, so that the identity is a random order.
inline absl::StatusOr<topology::Topology> cloud(const CloudShape& shape, uint64_t seed) {
  Random random(seed);
  const uint32_t count = shape.racks * shape.hosts;
  std::vector<uint32_t> slots(count);
  for (uint32_t i = 0; i < count; ++i) slots[i] = i;
  random.shuffle(slots);
  std::vector<topology::Host> hosts;
  std::vector<topology::Switch> switches = {{"core"}};
  std::vector<topology::Link> links;
  const auto between = [&](double least, double most) { return least + (most - least) * random.uniform(); };
  for (uint32_t rack = 0; rack < shape.racks; ++rack) {
    switches.push_back({absl::StrCat("rack-", rack)});
    const double uplink = 25e9 * shape.hosts / between(1, shape.oversubscription);
    links.push_back({count + 1 + rack, count, uplink, uplink, between(5e-6, 25e-6)});
  }
  for (uint32_t host = 0; host < count; ++host) {
    const uint32_t rack = slots[host] / shape.hosts;
    hosts.push_back({absl::StrCat("vm-", host), {rack, slots[host] % shape.hosts}});
    links.push_back({host, count + 1 + rack, 25e9, 25e9, between(1e-6, 5e-6)});
  }
  return topology::Topology::make(std::move(hosts), std::move(switches), std::move(links));
}

}  // namespace gleaner::ranks
