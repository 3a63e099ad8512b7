// The figures of a rank map on a network, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "common/collective/cost.h"
#include "common/ranks/conflicts.h"
#include "common/topology/builders.h"
#include "common/topology/network.h"

namespace gleaner::ranks {

inline constexpr uint64_t kBytes = 100'000'000;  // of a tensor whose sum is timed

inline Conflicts conflicts_of(const topology::Network& network, const collective::Schedule& schedule,
                              const RankMap& host_of) {
  const auto flows = count_flows(schedule, network, host_of);
  EXPECT_TRUE(flows.ok()) << flows.status();
  return flows.ok() ? count_conflicts(*flows, network.topology) : Conflicts();
}

inline double seconds_of(const topology::Network& network, const collective::Schedule& schedule, const RankMap& host_of,
                         uint64_t bytes) {
  const auto cost = collective::cost(schedule, network, host_of, bytes);
  EXPECT_TRUE(cost.ok()) << cost.status();
  return cost.ok() ? cost->seconds : 0;
}

}  // namespace gleaner::ranks
