// A network whose racks are not consecutive hosts, for tests of rank maps.
#pragma once

#include "absl/strings/str_cat.h"
#include "common/topology/topology.h"
#include "tests/unit/strategy/links.h"

namespace gleaner::strategy {

// Host i of 8 is in rack i % 2. An uplink is as slow as one host's link, so that two messages at a time need twice as
// long. `places`: hosts have places.
inline topology::Topology mixed_racks(bool places = false) {
  constexpr uint32_t kHosts = 8, kCore = kHosts + 2;
  std::vector<topology::Host> hosts;
  std::vector<topology::Link> links;
  for (uint32_t host = 0; host < kHosts; ++host) {
    hosts.push_back(
        {absl::StrCat("h", host), places ? std::vector<uint32_t>{host % 2, host / 2} : std::vector<uint32_t>()});
    links.push_back({host, kHosts + host % 2, kBits, kBits, kLatency});
  }
  for (uint32_t rack = 0; rack < 2; ++rack) links.push_back({kHosts + rack, kCore, kBits, kBits, kLatency});
  return *topology::Topology::make(std::move(hosts), {{"a"}, {"b"}, {"core"}}, std::move(links));
}

}  // namespace gleaner::strategy
