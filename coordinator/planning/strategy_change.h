// Values that tell people and programs how a job chooses its strategies (auto_strategies.h). Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/plan.h"

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
    plan::Bits bits = plan::Bits::kSchedule;  // the class of this strategy
  };
  uint64_t bytes = 0;    // of one tensor
  uint64_t tensors = 0;  // of this size
  std::string strategy;  // in force
  std::vector<Candidate> candidates;
};

// The gain or loss of a job with the other class of bits, by the models alone. A step sums each tensor once, by the
// strategies that Auto chooses for new tensors in a class, in partitions of the size that fits them.
struct OtherBits {
  plan::Bits bits = plan::Bits::kSchedule;  // the class that is not in force
  double seconds = 0;                       // modelled time of a step in that class
  double instead_of_seconds = 0;            // and in the class in force
  std::string strategy;                     // the strategies of that class, as in Summary::strategy
  friend bool operator==(const OtherBits&, const OtherBits&) = default;
};

// Returns plan::describe_other_bits() of these.
std::string describe(const OtherBits& other);

}  // namespace gleaner::coordinator
