// Draws topologies. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

inline constexpr uint32_t kMaxDrawnHosts = 128;
inline constexpr uint32_t kMaxDrawnLinks = 2048;

// Returns a graph in the language DOT, for Graphviz. Nodes of a tier have the same rank.
std::string to_dot(const Topology& topology);

// Returns an SVG document with one row for each tier (common/topology/tiers.h), and hosts at the bottom. Of a topology
// with two sides, such as a BiGraph, one side is above the other, and the hosts of the upper side are at the top.
// Faster links are wider. InvalidArgument if there are more hosts or links than a reader could tell apart.
absl::StatusOr<std::string> to_svg(const Topology& topology);

}  // namespace gleaner::topology
