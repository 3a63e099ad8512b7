// The least times that the bandwidths of hosts' links allow, to compare simulated times with. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/model.h"
#include "common/topology/topology.h"

namespace gleaner::netsim {

// Returns the bandwidth of a host: what all of its links carry together, in the slower direction.
double host_bits_per_second(const topology::Topology& topology, uint32_t host);

// Returns the least time of an all-reduce among equals: 2(n-1)/n · S/B, where B is the bandwidth of the slowest host
// that takes part (BytePS §2.3, Table 1). 0 for one rank.
double all_reduce_bound_seconds(const topology::Topology& topology, const std::vector<uint32_t>& host_of, double bytes);

// Returns the bandwidths of a job's members: `workers` workers, then summers. plan::bound_seconds() has the bound.
plan::Fleet fleet_of(const topology::Topology& topology, const std::vector<uint32_t>& host_of, uint32_t workers);

}  // namespace gleaner::netsim
