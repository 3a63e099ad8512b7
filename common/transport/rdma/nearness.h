// How near adapters are to the cores, or the GPU, whose memory they move: by NUMA nodes.
//
// What comes from another socket crosses the link between the two, which costs it bandwidth and takes that from
// everybody else. The kernel's table of distances says how much; nothing here is guessed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::transport::rdma {

// The numbers of a list such as "0-3,8"; without those that can't be read.
std::vector<int> numbers_in(absl::string_view list);

// A machine's NUMA nodes, as Linux shows them.
struct Nodes {
  std::map<int, std::vector<int>> cores;      // of each node
  std::map<int, std::vector<int>> distances;  // from each node, to each in order of their numbers; 10: to itself

  // Below /sys/devices/system/node of `root`. Empty where there is none.
  static Nodes read(const std::string& root = "/");
  // That have some of these cores.
  std::vector<int> with(const std::vector<int>& cores) const;
  // 1: within one node, or not known; 2: twice as much.
  double cost(int from, int to) const;
};

// The NUMA node that is meant by its number, or by the PCI address of a device of it, such as a GPU ("0000:3b:00.0",
// and "3b:00.0" for short); -1 where the machine does not tell, as one with a single node does. NotFound: there is no
// such node or device; InvalidArgument: neither.
absl::StatusOr<int> node_of(absl::string_view what, const std::string& root = "/");

// The cores that this process may run on.
std::vector<int> own_cores();

// How many times as much as from a node of its own it costs to reach each of `ports`' nodes from the nearest of ours;
// -1 and no nodes: not known, which counts as near.
std::vector<double> costs_of(const std::vector<int>& port_nodes, const std::vector<int>& our_nodes, const Nodes& nodes);

// The bandwidth that each port is to be used with. The nearest have theirs. Those that are farther have none, if
// `nearest_only`, or else what is left of theirs at that cost: half at twice as much.
std::vector<uint64_t> worth_of(const std::vector<uint64_t>& bits_per_second, const std::vector<double>& costs,
                               bool nearest_only);

}  // namespace gleaner::transport::rdma
