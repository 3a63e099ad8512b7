// Functions that compute, by NUMA node, how near adapters are to the memory that they move: the memory of the process's
// cores, or of a GPU.
//
// Data from another socket crosses the link between the sockets, which lowers its bandwidth and that of all other data
// on that link. The kernel's table of distances gives the relative cost of a transfer between two nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::transport::rdma {

// Returns the numbers of a list such as "0-3,8". Skips the parts that it can't read.
std::vector<int> numbers_in(absl::string_view list);

// A machine's NUMA nodes, as Linux shows them.
struct Nodes {
  std::map<int, std::vector<int>> cores;      // by node
  std::map<int, std::vector<int>> distances;  // by node: to each node, in order of their numbers; 10: to itself

  // Reads /sys/devices/system/node below `root`. Returns no nodes if that folder does not exist.
  static Nodes read(const std::string& root = "/");
  // Returns the nodes that have at least one of these cores.
  std::vector<int> with(const std::vector<int>& cores) const;
  // Returns the distance between the nodes relative to the distance within `from`: 1 within a node or if unknown, 2 if
  // it is twice as much.
  double cost(int from, int to) const;
};

// Returns the NUMA node that `name` identifies: by its number, or by the PCI address of a device on it, such as a GPU
// ("0000:3b:00.0", or "3b:00.0" for short). Returns -1 if the machine does not tell a device's node, as is usual on
// machines with a single node. NotFound: there is no such node or device. InvalidArgument: `name` has neither form.
absl::StatusOr<int> node_of(absl::string_view name, const std::string& root = "/");

// Returns the cores that this process may run on.
std::vector<int> own_cores();

// Returns, for each port's node, the cost() of a transfer from the nearest of `our_nodes`. An unknown node (-1) counts
// as near (1), and so do all nodes if `our_nodes` is empty.
std::vector<double> costs_of(const std::vector<int>& port_nodes, const std::vector<int>& our_nodes, const Nodes& nodes);

// Returns the bandwidth with which each port should be used. The nearest ports keep theirs. A farther port gets none if
// `nearest_only`, else its bandwidth divided by its cost relative to the nearest: half at twice the cost.
std::vector<uint64_t> usable_bandwidths(const std::vector<uint64_t>& bits_per_second, const std::vector<double>& costs,
                                        bool nearest_only);

}  // namespace gleaner::transport::rdma
