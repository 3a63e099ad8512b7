// A SPEC is a short text for a regular topology (common/topology/builders.h):
//
//   star:N        N hosts at one switch
//   fat-tree:K    the fat tree of switches with K ports
//   bigraph:MxN   N switches on two sides, with M hosts each
//   racks:RxH     R racks of H hosts below one switch
//
// Pure.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/topology/builders.h"

namespace gleaner::topology {

inline constexpr char kSpecs[] = "star:N, fat-tree:K, bigraph:MxN (M hosts at each of N switches) or racks:RxH";

// Returns whether a text is meant as a SPEC: it begins with the name of one of these topologies and a colon.
bool is_spec(absl::string_view text);

// Returns the topology of a SPEC. InvalidArgument names the part that is wrong and gives an example.
absl::StatusOr<Topology> topology_of_spec(absl::string_view spec, const LinkSpeed& speed);

}  // namespace gleaner::topology
