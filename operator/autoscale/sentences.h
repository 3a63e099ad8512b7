// Functions that word the reasons of verdicts for people.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "operator/autoscale/bids.h"

namespace gleaner::autoscale {

std::string percent(double share);  // "1.5 %"

// Returns the sentence about a job whose summers stay as they are, for the reason `code` of Worth::unknown(). `fresh`
// is Settings::fresh.
std::string hold_sentence(Code code, absl::Duration fresh);

// Returns the sentence about the time that the bid's machine saves; the bid has a bidder. `measured` is
// Settings::measured.
std::string worth_sentence(const Bid& bid, bool measured);

}  // namespace gleaner::autoscale
