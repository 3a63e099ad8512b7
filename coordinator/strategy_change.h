// Values that tell people and programs how a job chooses its strategies (auto_strategies.h). Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gleaner::coordinator {

// A change of the strategies of a running job.
struct StrategyChange {
  uint32_t epoch = 0;    // of the plan that makes it
  double seconds = 0;    // since the job began, or since this coordinator took it up
  uint64_t tensors = 0;  // number of tensors that change
  uint64_t bytes = 0;    // of these tensors
  std::string from, to;  // the names of their strategies, as in Summary::strategy
  // The time of a step by the corrected models, with the strategies before and after.
  double seconds_before = 0;
  double seconds_after = 0;
  std::string why;  // for people
};

// Returns a sentence for people that says all this.
std::string describe(const StrategyChange& change);

// The candidates for tensors of one size.
struct CandidateTimes {
  struct Candidate {
    std::string strategy;
    double seconds = 0;        // modelled time of one tensor
    double factor = 1;         // by which the models of this strategy are corrected
    bool is_measured = false;  // false: the factor is an assumption
    double corrected_seconds = 0;
  };
  uint64_t bytes = 0;    // of one tensor
  uint64_t tensors = 0;  // of this size
  std::string strategy;  // in force
  std::vector<Candidate> candidates;
};

}  // namespace gleaner::coordinator
