// make_schedule() makes the schedule of a collective, of its description (spec.h). Pure.
//
// clang-format off
//   algorithm         ranks             parameters
//   ring              any               none
//   halving-doubling  any               none; best for powers of two
//   double-tree       any               blocks: of each half of the vector, >= 1
//   bcube             powers of radix   radix: >= 2; default: 4 for powers of 4, else the least that fits
//   blueconnect       any               factors of the number of ranks; default: its prime factors, ascending. The
//                                       first is among consecutive ranks
//   gather            any               none; an all-gather, after which ranks add in rank order
//   racks             any               factors: {racks, ranks in each}; or group_sizes; default: √n racks
//                                       whose sizes differ by at most one
//   two-level         any               as racks. Also masters
//
// These are the algorithms of an all-reduce. Those of other collectives have no parameters:
//   reduce            binomial
//   broadcast         binomial; scatter-ring for large vectors
//   all-gather        ring; gather; direct
//   reduce-scatter    ring; halving for powers of two; direct
//   gather, scatter   direct; binomial
//   all-to-all        direct
// clang-format on
#pragma once

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/collective/schedule.h"
#include "common/collective/spec.h"

namespace gleaner::collective {

inline constexpr uint32_t kMaxRanks = 65536;
// A larger schedule is refused before it is made, unless the caller checks the size.
inline constexpr uint64_t kMaxOperations = 20'000'000;

// Is called with the number of operations, or a little more, before a schedule of more than 6.3 million is made. If it
// returns an error, so does make_schedule().
using SizeCheck = absl::FunctionRef<absl::Status(uint64_t operations)>;

// An all-to-all has ranks² blocks.
inline constexpr uint32_t kMaxAllToAllRanks = 1024;

// Returns the names of a collective's algorithms.
std::span<const absl::string_view> algorithms(Postcondition postcondition = Postcondition::kAllReduce);

// Returns whether an algorithm takes Spec::group_sizes. An unknown one does not.
bool takes_groups(absl::string_view algorithm);

// Makes the schedule of a collective, or with `only` the program of one rank (schedule.h); Spec::rank_of does not
// matter. The algorithm `gather` of an all-reduce makes an all-gather. InvalidArgument says what would do: the
// collective has no such algorithm, a parameter is out of range, does not fit the number of ranks, is missing, or is
// not one of the algorithm's, the root or the number of ranks is out of range, or the schedule would have more than
// kMaxOperations operations.
absl::StatusOr<Schedule> make_schedule(const Spec& spec, const Collective& collective, OnlyRank only = {});
// Does the same, with `check` in place of the limit.
absl::StatusOr<Schedule> make_schedule(const Spec& spec, const Collective& collective, OnlyRank only, SizeCheck check);

// Makes the schedule of an all-reduce among this number of ranks.
absl::StatusOr<Schedule> make_schedule(const Spec& spec, uint32_t ranks);

}  // namespace gleaner::collective
