// Simulates one run of an algorithm, as `gleaner sim` and each point of its sweep do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/flags/command.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/all_reduce_bound.h"
#include "common/topology/network.h"

namespace gleaner::cli {

// Halving-doubling with the rank map of EFLOPS. It is no schedule of common/collective, and neither is
// plan::kSummersStrategy, the push-pull through summers.
inline constexpr char kHdrm[] = "hdrm";

// The network, the operation and the conditions to simulate. Texts are those of the flags.
struct SimulationFlags {
  std::string algorithm;
  std::string bytes;
  std::string stages;  // "3,2,2"; empty: the algorithm's default
  uint32_t radix = 0;  // 0: the algorithm's default
  int64_t ranks = -1;  // -1: one on each host that is not a summer
  int64_t summers = -1;
  std::string partition_bytes;
  std::string dtype = "fp32";
  std::string rank_map;  // identity, random:SEED, best or a file; empty: identity, or hdrm's own
  uint64_t seed = 0;
};
void add_simulation_flags(flags::Command& command, SimulationFlags& flags);

// Parses `flags.bytes`.
absl::StatusOr<uint64_t> bytes_of(const SimulationFlags& flags);

// Are called from time to time with the part that is done, 0 to 1.
struct SimulationProgress {
  netsim::Progress searching;   // for a rank map
  netsim::Progress simulating;  // messages that have arrived
};

struct Simulation {
  uint32_t ranks = 0;  // workers, with summers
  uint32_t summers = 0;
  uint64_t bytes = 0;          // of each rank's vector
  plan::AllReduceBound bound;  // of all strategies
  netsim::RunResult run;
};

// Returns the names of all algorithms.
std::vector<std::string> simulated_algorithms();

// `conditions.seed` is set from the flags. InvalidArgument names the flag that is wrong or does not fit the network.
// Unavailable: links of the conditions left no path.
absl::StatusOr<Simulation> simulate(const SimulationFlags& flags, const topology::Network& network,
                                    netsim::Conditions conditions, const SimulationProgress& progress);

}  // namespace gleaner::cli
