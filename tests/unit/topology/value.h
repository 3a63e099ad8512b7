// Unwraps topologies that must have been made.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "absl/status/statusor.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

inline Topology value(absl::StatusOr<Topology> made) {
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

}  // namespace gleaner::topology
