// Functions that find members whose addresses lead other members astray. Pure.
//
// Workers connect to the summers of all members, also to those that are colocated in workers. A loopback address, or an
// address that stands for all addresses of a machine (0.0.0.0), leads each worker to its own host. So it fits only if
// all workers are in the network of its member (common/base/own_network.h). For example, worker 0 at 127.0.0.1:4000 on
// host A can't be reached by worker 1 on host B.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

// Returns whether `worker` can't reach the summer of `other`: the two are in different networks, `other` gives such an
// address, and the two share no directory for shared memory. False if one of the networks is not known.
bool is_out_of_reach(const Identity& worker, const Identity& other);

// Returns OK if every worker that takes part can reach the newcomer. The error names a worker that can't, and the
// setting that helps: of the file of `gleaner run --hosts` if the job has one (Options::Launcher::has_hosts_file), and
// otherwise of the member, which the user started.
absl::Status check_reachable(const Roster& roster, const Identity& newcomer, bool has_hosts_file);

struct OutOfReach {
  uint32_t seat = 0;
  absl::Status why;  // as of check_reachable()
};

// Returns the members that take part and that the newcomer, if it is a worker, can't reach.
std::vector<OutOfReach> find_out_of_reach(const Roster& roster, const Identity& newcomer, bool has_hosts_file);

}  // namespace gleaner::coordinator
