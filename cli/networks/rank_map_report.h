// The outputs of `gleaner ranks`: a rank map, what it costs, and what it wins over the order of the topology.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/cost.h"
#include "common/ranks/conflicts.h"
#include "common/ranks/grouping.h"
#include "common/ranks/rank_map.h"

namespace gleaner::cli {

// The cost and the flows of a schedule under one map.
struct MapFigures {
  static absl::StatusOr<MapFigures> of(const collective::Schedule& schedule, const topology::Network& network,
                                       const ranks::RankMap& host_of, uint64_t bytes);

  collective::Cost cost;
  ranks::Flows flows;
  ranks::Conflicts conflicts;
};

struct RankMapReport {
  const topology::Topology& topology;
  std::string algorithm;  // as the user gave it
  uint64_t bytes = 0;
  ranks::RankMap host_of;
  std::string origin;    // how the map was found, as a sentence of explain without its full stop
  ranks::Groups groups;  // empty: the user asked for none
  MapFigures map, identity;
};

std::string to_json(const RankMapReport& report);
// A line "HOST slots=1" for each rank, in order, as Open MPI's --hostfile takes them. mpirun changes the order: the
// host on which it runs comes first. InvalidArgument names a host whose name such a file can't have.
absl::StatusOr<std::string> to_hostfile(const RankMapReport& report);
// A line "rank R=HOST slot=*:*" for each rank, as Open MPI's --rankfile takes them: "*:*" are all cores of all sockets.
// Errors are those of to_hostfile().
absl::StatusOr<std::string> to_rankfile(const RankMapReport& report);
std::string to_table(const RankMapReport& report);
// States what the map wins, and which link binds in each step, before and after.
std::string to_explanation(const RankMapReport& report);

}  // namespace gleaner::cli
