// A topology with its paths, and the figures of a rank map on it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/collective/cost.h"
#include "common/ranks/conflicts.h"
#include "common/topology/builders.h"
#include "common/topology/paths.h"

namespace gleaner::ranks {

inline constexpr uint64_t kBytes = 100'000'000;  // of a tensor whose sum is timed

struct Network {
  explicit Network(absl::StatusOr<topology::Topology> made)
      : topology(std::make_unique<topology::Topology>(std::move(made).value())), paths(*topology) {}

  Conflicts conflicts(const collective::Schedule& schedule, const RankMap& host_of) const {
    const auto flows = count_flows(schedule, *topology, paths, host_of);
    EXPECT_TRUE(flows.ok()) << flows.status();
    return flows.ok() ? count_conflicts(*flows, *topology) : Conflicts();
  }
  double seconds(const collective::Schedule& schedule, const RankMap& host_of, uint64_t bytes) const {
    const auto cost = collective::cost(schedule, *topology, paths, host_of, bytes);
    EXPECT_TRUE(cost.ok()) << cost.status();
    return cost.ok() ? cost->seconds : 0;
  }

  std::unique_ptr<topology::Topology> topology;  // does not move, as `paths` refers to it
  topology::Paths paths;
};

}  // namespace gleaner::ranks
