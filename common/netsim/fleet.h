// The bandwidths of hosts' links. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/model.h"
#include "common/topology/topology.h"

namespace gleaner::netsim {

// Returns the bandwidth of a host: what all of its links carry together, in the slower direction.
double host_bits_per_second(const topology::Topology& topology, uint32_t host);

// Returns the bandwidths of a job's members: `workers` workers, then summers.
plan::Fleet fleet_of(const topology::Topology& topology, const std::vector<uint32_t>& host_of, uint32_t workers);

}  // namespace gleaner::netsim
