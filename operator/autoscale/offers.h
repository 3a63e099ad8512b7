// How jobs that compete for machines get them: one machine goes to one job in a round.
//
// The highest priority first; among equals those below their minimum, then the largest share of its step gained, then
// fewer summers, then the name.
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
  std::vector<const Candidate*> machines;  // that it may have, best first
  uint32_t summers = 0;                    // without those that go
  bool pausing = false;                    // it takes no offer yet: its last addition is too young
  bool below_minimum() const { return summers < job->min; }
};

struct Offer {
  const Bidder* bidder = nullptr;
  const Candidate* machine = nullptr;
  double share = 0;
};

// The machine that buys this job most, of those not in `taken`; none: it has none.
std::optional<Offer> best_offer(const Bidder& bidder, const absl::flat_hash_set<std::string>& taken);

// True if `one` goes before `other`.
bool goes_before(const Offer& one, const Offer& other);

}  // namespace gleaner::autoscale
