#include "common/topology/network.h"

#include <utility>

namespace gleaner::topology {

Network make_network(Topology topology) {
  Paths paths(topology);
  return {std::move(topology), std::move(paths)};
}

}  // namespace gleaner::topology
