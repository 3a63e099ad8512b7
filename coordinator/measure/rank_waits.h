// Tells communication from the wait for a late rank.
//
// A rank's communication time in a step lasts from its first push_pull to its last result. Results come to all ranks at
// about the same time, so the rank that communicates least begins last, and the others wait for it:
//
//   rank 0  compute.....evaluate.........|communicate|     waits for nothing
//   rank 1  compute.....|wait............|communicate|
#pragma once

#include <span>
#include <vector>

namespace gleaner::coordinator {

// The steps of one rank between two steps that all ranks have ended.
struct RankSteps {
  double steps = 0;
  double communication_seconds = 0;
  double bound_seconds = 0;  // least communication time of all these steps; 0: not known
};

struct RankWaits {
  std::vector<double> seconds;  // by rank: part of its communication time
  size_t latest = 0;            // the rank that communicates least
};

// A wait that is a smaller part of the communication is taken for noise: times of ranks are measured at different
// moments, and estimated if steps are short (common_steps.h).
inline constexpr double kLeastWaitPart = 0.05;

// Returns for how long each rank waits. Communication that would be left without the waits is never below its bound.
// Ranks that count different numbers of steps have left out different steps, so none of them is known to wait.
RankWaits waits_of(std::span<const RankSteps> ranks);

}  // namespace gleaner::coordinator
