// The overhead o of LogP (Culler et al., PPoPP 1993): how long a processor takes to send a message, and to receive one.
// Pure.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace gleaner {

// Returns the overhead, the mean of two hosts. A small message and its answer take two latencies of the network, which
// are its round trip, and four overheads. 0 if the answer came as fast as the round trip.
inline absl::Duration message_overhead(absl::Duration answer_time, absl::Duration round_trip) {
  return std::max(absl::ZeroDuration(), (answer_time - round_trip) / 4);
}

}  // namespace gleaner
