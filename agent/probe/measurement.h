// Measurement has the round trips of one peer in one round. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/median.h"

namespace gleaner::probe {

struct Measurement {
  uint32_t asked = 0;
  std::vector<absl::Duration> round_trips;  // of the questions that were answered

  // Returns the 10th percentile, which waits of processors and of queues disturb least (Luo §4.2.1). Requires a round
  // trip.
  absl::Duration round_trip() const {
    std::vector<absl::Duration> values = round_trips;
    return value_at(values, values.size() / 10);
  }

  // Returns the share of questions without an answer, rounded up. Requires a question.
  uint32_t lost_percent() const {
    const auto lost = asked - static_cast<uint32_t>(round_trips.size());
    return (100 * lost + asked - 1) / asked;
  }
};

}  // namespace gleaner::probe
