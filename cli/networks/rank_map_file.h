// Reads a rank map from a file that `gleaner ranks` has written: its JSON (-o json), a rank file (-o rankfile),
// whose lines are "rank R=HOST ...", or a host file (-o hostfile), whose lines begin with a host's name, in the order
// of the ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/topology/topology.h"

namespace gleaner::cli {

// Returns the host of each rank. Errors name the file: those of read_file(), and InvalidArgument if the file has
// none of these forms, or names a host that the topology does not have.
absl::StatusOr<std::vector<uint32_t>> read_rank_map(const std::string& path, const topology::Topology& topology);

}  // namespace gleaner::cli
