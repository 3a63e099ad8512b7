// Functions that decide which of several competing jobs gets a machine. In one round, one machine goes to one job.
//
// The highest priority comes first. Among equals a job below its minimum comes first, then the job that gains the
// larger share of its own step, then the one with fewer summers, then the first by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/worth.h"

namespace gleaner::autoscale {

// A job that would take one more summer.
struct Bidder {
  const Job* job = nullptr;
  const Worth* worth = nullptr;
  Verdict* verdict = nullptr;
  std::vector<const Candidate*> machines;  // machines that the job may use, best first
  uint32_t summers = 0;                    // number of its summers, without those being removed
  bool pausing = false;                    // the last addition is too recent: the job gets no machine
  bool below_minimum() const { return summers < job->min; }
};

struct Bid {
  const Bidder* bidder = nullptr;
  const Candidate* machine = nullptr;
  double share = 0;
};

// Returns the bid for the machine that shortens this job's step most, among those not in `taken`; nullopt: there is
// none.
std::optional<Bid> best_bid(const Bidder& bidder, const absl::flat_hash_set<std::string>& taken);

// Returns whether `one` is accepted before `other`.
bool goes_before(const Bid& one, const Bid& other);

}  // namespace gleaner::autoscale
