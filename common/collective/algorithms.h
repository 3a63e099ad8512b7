// make_schedule() makes the schedule by which ranks sum their vectors, by the name of its algorithm. Pure.
//
// clang-format off
//   algorithm         ranks             parameters
//   ring              any               none
//   halving-doubling  any               none; best for powers of two
//   double-tree       any               blocks: of each half of the vector, >= 1
//   bcube             powers of radix   radix: >= 2; default: 4 for powers of 4, else the least that fits
//   blueconnect       any               stages: factors of the number of ranks; default: its prime factors, ascending.
//                                       Stage 0 runs among consecutive ranks
//   gather            any               none; an all-gather, after which ranks add in rank order
//   racks             any               stages: {racks, ranks in each}; or groups
//   two-level         any               stages: {groups, ranks in each}; or groups; default: √n groups of consecutive
//                                       ranks whose sizes differ by at most one. Also global_chunks and local_chunks
// clang-format on
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

inline constexpr uint32_t kMaxRanks = 65536;
// A larger schedule is refused before it is made. It takes 20 bytes of memory for each operation.
inline constexpr uint64_t kMaxOperations = 20'000'000;

struct ScheduleRequest {
  std::string algorithm;
  uint32_t ranks = 1;
  std::vector<uint32_t> stages;  // empty: the algorithm's default
  uint32_t radix = 0;            // 0: the algorithm's default
  uint32_t blocks = 0;           // 0: the algorithm's default, kDefaultTreeBlocks
  Stage groups;                  // of any sizes, with each rank once; empty: given by `stages`, or the default
  // By rank; both empty: chunks are spread evenly (two_level.h).
  std::vector<uint32_t> global_chunks, local_chunks;
};

// Returns the names of all algorithms.
std::span<const absl::string_view> algorithms();

// Returns whether an algorithm takes ScheduleRequest::groups. An unknown one does not.
bool takes_groups(absl::string_view algorithm);

// InvalidArgument says what would do: the algorithm is unknown, a parameter is out of range, does not fit the number of
// ranks, is missing, or is not one of the algorithm's, or the schedule would have more than kMaxOperations operations.
absl::StatusOr<Schedule> make_schedule(const ScheduleRequest& request);

}  // namespace gleaner::collective
