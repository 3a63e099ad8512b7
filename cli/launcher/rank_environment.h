// The environment variables that tell programs written for torchrun their rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/launcher/user_environment.h"

namespace gleaner::launcher {

struct RankEnvironment {
  uint32_t worker = 0;
  uint32_t workers = 1;
  uint32_t local_rank = 0;
  uint32_t local_ranks = 1;
  bool elastic = false;  // the number of workers changes, so RANK and WORLD_SIZE can't be set
  std::string master;    // address of the first worker's host
  uint16_t master_port = 0;
};

// Returns the variables as NAME=VALUE: LOCAL_RANK and LOCAL_WORLD_SIZE, and for a job with a fixed number of workers
// also RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. As with torchrun, they replace variables that are already set. If
// the user has set both MASTER_ADDR and MASTER_PORT, the address of the first worker, these two stay.
std::vector<std::string> torchrun_variables(const RankEnvironment& rank, const UserEnvironment& user);

// Returns a TCP port of `host`, an address of this machine, that is free now; 0: there is none, or `host` is not an
// address of this machine.
uint16_t free_port(const std::string& host);

// Returns "OMP_NUM_THREADS=1" under torchrun's conditions: several processes share a machine, and the user has not set
// the variable. Otherwise returns an empty string.
std::string one_thread(uint32_t processes_of_a_machine, const UserEnvironment& user);

}  // namespace gleaner::launcher
