// Networks of which only probes between the hosts are known, for tests of strategies.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ranks/random.h"
#include "common/topology/probes.h"

namespace gleaner::strategy {

// The speeds that probes measure within racks and across them.
struct Speeds {
  double near_bits = 40e6, far_bits = 25e6;
  double near_latency = 50e-6, far_latency = 50e-6;
  double noise = 0.03;  // of bandwidths
  double latency_noise = 0.5;
};

// Returns the topology of probes between hosts whose racks are rack_of.
inline topology::Topology probes_of(const std::vector<uint32_t>& rack_of, const Speeds& speeds, uint64_t seed = 1) {
  ranks::Random random(seed);
  topology::Probes probes;
  const size_t hosts = rack_of.size();
  probes.latency_seconds.resize(hosts * hosts);
  probes.bits_per_second.resize(hosts * hosts);
  for (size_t a = 0; a < hosts; ++a) {
    probes.names.push_back(absl::StrCat("h", a));
    for (size_t b = 0; b < a; ++b) {
      const bool near = rack_of[a] == rack_of[b];
      const double bits = (near ? speeds.near_bits : speeds.far_bits) * (1 + speeds.noise * (2 * random.uniform() - 1));
      const double latency =
          (near ? speeds.near_latency : speeds.far_latency) * (1 + speeds.latency_noise * random.uniform());
      probes.bits_per_second[a * hosts + b] = probes.bits_per_second[b * hosts + a] = bits;
      probes.latency_seconds[a * hosts + b] = probes.latency_seconds[b * hosts + a] = latency;
    }
  }
  return *topology::topology_of(probes);
}

// Returns racks of these sizes in an order that says nothing about them.
inline std::vector<uint32_t> hidden(const std::vector<uint32_t>& sizes, uint64_t seed = 7) {
  std::vector<uint32_t> rack_of;
  for (uint32_t rack = 0; rack < sizes.size(); ++rack) rack_of.insert(rack_of.end(), sizes[rack], rack);
  ranks::Random(seed).shuffle(rack_of);
  return rack_of;
}

}  // namespace gleaner::strategy
