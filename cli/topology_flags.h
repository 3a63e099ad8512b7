// The flags of several commands that give a topology: a SPEC with the speed of its links, or a FILE that has them.
// Errors are InvalidArgument and name the flag, except for a file that can't be read (NotFound, Unavailable, ...).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/flags/command.h"
#include "common/topology/topology.h"

namespace gleaner::cli {

struct TopologyFlags {
  std::string name = "--topology";                   // of the flag or positional argument with `text`, for messages
  std::string text;                                  // SPEC or FILE
  std::string bandwidth, uplink, latency, overhead;  // empty: the defaults of topology::LinkSpeed
  std::string placement;                             // empty: balanced for a SPEC, in-order for a FILE
};

// Adds --topology. A command for which --bandwidth has another meaning adds no link flags, and sets the other texts
// itself or leaves them empty.
flags::Flag add_topology_flag(flags::Command& command, TopologyFlags& flags);
std::string help_of_topology();
// Adds --bandwidth, --uplink, --latency and --overhead.
void add_link_flags(flags::Command& command, TopologyFlags& flags);

// Adds --placement.
void add_placement_flag(flags::Command& command, TopologyFlags& flags);

// Returns the topology with the hosts of the job's members first, as --placement says: workers, then summers.
// InvalidArgument: there are fewer hosts than members.
absl::StatusOr<topology::Topology> placed(const TopologyFlags& flags, const topology::Topology& topology,
                                          uint32_t workers, uint32_t summers);

// Returns the topology: of a SPEC (common/topology/spec.h), else of the file with this path (common/topology/json.h). A
// file states the speed of its links, so the flags that state it are then an error, as is --uplink where no link joins
// two switches.
absl::StatusOr<topology::Topology> topology_of(const TopologyFlags& flags);

}  // namespace gleaner::cli
