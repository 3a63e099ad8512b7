// Echoes measure how long a small message and its answer take between two programs. The client sends an echo, the
// server sends the same bytes back, and the client then sends the next one.
//
// This time is the round trip of the network, and the time of both hosts' processors, which send two messages and
// receive two. docs/agent.md has the format.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/probe/socket.h"
#include "common/base/env.h"

namespace gleaner::probe {

inline constexpr uint8_t kLeastEchoes = 3;                           // also where a round trip is longer than kEchoTime
inline constexpr uint8_t kMostEchoes = 100;                          // of a connection
inline constexpr absl::Duration kEchoTime = absl::Milliseconds(50);  // an echo that begins later is the last

// The bytes on the wire are those of the struct.
struct Echo {
  uint8_t is_last = 0;  // 1 in the last echo, else 0
  uint8_t number = 0;   // 0, 1, ...
  bool operator==(const Echo&) const = default;
};
static_assert(sizeof(Echo) == 2);

// Sends echoes and returns the usual time from sending one until its answer is here, the lower quartile: the least time
// is that of threads which happen not to sleep. Blocks until `deadline` at most (the clock's monotonic time).
// DeadlineExceeded: an answer is missing then. Unavailable: the peer has closed the connection, or an answer differs
// from its echo.
absl::StatusOr<absl::Duration> usual_answer_time(const Socket& socket, const Clock& clock, absl::Duration deadline);

// Answers a client's echoes until the last one. InvalidArgument: a message is not the next echo. Other errors: as
// above.
absl::Status answer_echoes(const Socket& socket, const Clock& clock, absl::Duration deadline);

}  // namespace gleaner::probe
