// Reads and writes topologies as JSON:
//
//   {"hosts": [{"name": "a", "place": [0, 1], "overhead_us": 4.2}, {"name": "b"}],
//    "switches": [{"name": "s"}],
//    "links": [{"a": "a", "b": "s", "bandwidth": "100Gbit", "latency_us": 1.5},
//              {"a": "b", "b": "s", "bandwidth": 25e9, "back_bandwidth": 10e9, "latency_us": 1.5}]}
//
// "a" and "b" name hosts or switches. A bandwidth is in bits per second, or a text (common/base/units.h). "bandwidth"
// is that from a to b; "back_bandwidth" that from b to a, by default the same. "place" and "overhead_us" may be absent:
// unknown. A host or switch may also be its name alone. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

// Returns the topology of a file, or the one that a file with probes suggests (common/topology/probes.h).
// InvalidArgument names the field that is wrong, and what Topology::make() says.
absl::StatusOr<Topology> parse_topology(absl::string_view text);

// Returns the file, which ends with a newline. parse_topology() makes an equal topology of it if each latency comes
// from microseconds (common/topology/latency.h).
std::string to_json(const Topology& topology);

}  // namespace gleaner::topology
