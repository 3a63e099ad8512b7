// Chooses the way on which gradients should travel inside a machine (BytePS §4.2). Pure, and the same for the same
// machine.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/machine/candidates.h"

namespace gleaner::machine {

// A share of gradients that would travel by brute force beside CPU-assisted aggregation. It is a figure to compare
// with, not a choice: brute force loads host memory n times as much, so §4.2.1 does without it.
struct Mix {
  double brute_force_share = 0;  // x*
  double seconds = 0;            // J(x*)
};

struct Choice {
  SwitchCounts switches;
  std::vector<Candidate> candidates;  // in the order of Way
  size_t best = 0;                    // index of the possible candidate with the least time
  std::optional<size_t> runner_up;    // none: only one is possible
  size_t current = 0;                 // index of the best one that Gleaner goes today
  std::optional<Mix> mix;             // none: CPU-assisted aggregation is impossible, or no share makes it faster

  const Candidate& chosen() const { return candidates[best]; }
};

// Times count as equal up to this factor. Equal times go to the simpler way.
inline constexpr double kEqual = 1 + 1e-9;

// Errors: those of check(). InvalidArgument: a value of the step is out of its range.
absl::StatusOr<Choice> choose(const Machine& machine, const Step& step = {});

}  // namespace gleaner::machine
