// Probes are measurements between each two hosts of a network whose links are not known, as JSON:
//
//   {"hosts": ["a", "b"], "latency_us": [[0, 12], [12, 0]], "bandwidth": [[0, 9.4e9], [9.4e9, 0]],
//    "overhead_us": [4.2, 5]}
//
// Row i of a matrix has the values from host i to each host. Both matrices are symmetric; their diagonals do not count.
// A bandwidth is in bits per second, or a text such as "10Gbit". overhead_us has the overhead of each host for a
// message (Host::overhead_seconds) and may be absent. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/topology/topology.h"

namespace gleaner::topology {

struct Probes {
  std::vector<std::string> names;
  // By host, then host: element i·n + j is from host i to host j. 0 if i == j.
  std::vector<double> latency_seconds;
  std::vector<double> bits_per_second;
  std::vector<double> overhead_seconds;  // by host; empty: not measured

  size_t size() const { return names.size(); }
  double latency(size_t from, size_t to) const { return latency_seconds[from * size() + to]; }
  double bandwidth(size_t from, size_t to) const { return bits_per_second[from * size() + to]; }
};

// InvalidArgument names the field and entry that are wrong.
absl::StatusOr<Probes> parse_probes(absl::string_view text);

// Returns the file, with a line for each row, which ends with a newline. parse_probes() makes equal probes of it if
// each latency and overhead comes from microseconds (common/topology/latency.h).
std::string to_json(const Probes& probes);

// Returns the topology that the probes suggest. Host i hangs at a switch "port-of-NAME" of its own, by a link with the
// largest bandwidth of its row and no latency. A link with the pair's bandwidth and latency joins each two switches. So
// the path between two hosts is unique, and a host's own link bounds its flows together. Hosts have their overheads;
// place is empty.
absl::StatusOr<Topology> topology_of(const Probes& probes);

// Returns whether the topology is one that topology_of() makes of probes between two hosts or more.
bool is_of_probes(const Topology& topology);

}  // namespace gleaner::topology
