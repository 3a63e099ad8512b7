// Spec describes a schedule, all but the number of its ranks. It is the same value from a flag or a TrainingJob,
// through the search for rank maps and the plan, to the workers that execute the schedule; make_schedule()
// (algorithms.h) makes the schedule of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gleaner::collective {

// How many chunks each rank of two-level masters, if not evenly. Fast ranks take more of them (Luo §4.2.3).
struct MasterCounts {
  std::vector<uint32_t> global;  // by rank: the chunks of which it is the global master
  std::vector<uint32_t> local;   // by rank: the chunks of which it is a local master, with the global ones
  bool empty() const { return global.empty() && local.empty(); }
  friend bool operator==(const MasterCounts&, const MasterCounts&) = default;
};

// Parameters that are empty or 0 have the algorithm's default. algorithms.h says which algorithm takes which.
struct Spec {
  std::string algorithm;
  std::vector<uint32_t> factors;      // of the number of ranks
  uint32_t radix = 0;                 // ranks in a group
  uint32_t blocks = 0;                // of each half of the vector
  std::vector<uint32_t> group_sizes;  // of groups of consecutive ranks; in place of `factors`
  MasterCounts masters;
  // By worker: its rank. Empty: worker i has rank i.
  std::vector<uint32_t> rank_of;
  friend bool operator==(const Spec&, const Spec&) = default;
};

// Returns the algorithm and its factors or groups, if any are given: "ring", "blueconnect 3,2,2", "racks 3+5".
std::string name_of(const Spec& spec);

}  // namespace gleaner::collective
