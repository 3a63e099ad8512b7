// The variables by which programs that were written for torchrun know who they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/launcher/hosts.h"

namespace gleaner::launcher {

struct RankEnvironment {
  uint32_t worker = 0;
  uint32_t workers = 1;
  uint32_t local_rank = 0;
  uint32_t local_ranks = 1;
  bool elastic = false;  // their number changes: there is no world to be told of
  std::string master;    // HOST of the first worker
  uint16_t master_port = 0;
};

// NAME=VALUE: LOCAL_RANK and LOCAL_WORLD_SIZE; of a job with a fixed number of workers also RANK, WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT. As torchrun's, they replace what is set. An address and port that the user has set
// (both) stay: they say where the first worker shall listen.
std::vector<std::string> torchrun_variables(const RankEnvironment& rank);

// A TCP port of this machine that nobody listens on now, as torchrun picks one; 0: there is none.
uint16_t free_port(const std::string& host);

// "OMP_NUM_THREADS=1" where torchrun sets it: several processes share a machine, and the user said nothing. Otherwise
// empty.
std::string one_thread(uint32_t processes_of_a_machine);

}  // namespace gleaner::launcher
