// The pace limits what measurements of latencies cost. Pure.
//
// A measurement asks one peer up to kQuestions questions, at most one at a time, with a pause between them.
//
//   bandwidth  In a pause an agent sends a question and an answer, and receives as many. The pause is so long that
//              they take at most kBandwidthShare of the NIC's speed each way. An unknown speed counts as 10 Mbit/s.
//   processor  The pause is 50 ms at least, so an agent sends and receives 80 packets a second, each of which costs a
//              wake-up, a system call and an HMAC of 300 bytes. They take less than 1 % of one processor while a packet
//              costs less than 125 us. Of unexpected packets an agent reads kMostPackets a second.
//   cluster    A peer is measured again after renewal_period(), so an agent asks at most 300 questions an hour once
//              it has measured all its peers: 1,000 agents ask 300,000 in all. In the first pass, which takes 8.3
//              hours, they ask less than 900,000 an hour.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace gleaner::probe {

inline constexpr uint32_t kQuestions = 100;                            // of a measurement
inline constexpr absl::Duration kLeastPause = absl::Milliseconds(50);  // between two questions
inline constexpr absl::Duration kAskingTime = absl::Seconds(28);       // of a round; shorter than kRoundTime
inline constexpr double kBandwidthShare = 0.001;
inline constexpr double kUnknownBitsPerSecond = 10e6;
inline constexpr uint32_t kMostPackets = 1000;  // that an agent reads in a second; the kernel drops more

struct Pace {
  absl::Duration pause = kLeastPause;
  uint32_t questions = kQuestions;  // fewer where the pause leaves no time for all
  bool operator==(const Pace&) const = default;
};

// Returns the pace for a NIC of this speed, each way; 0: unknown.
Pace pace_for(double bits_per_second);

// Returns the time after which a measured peer is measured again, of an agent that measures `peers`.
absl::Duration renewal_period(size_t peers);

// Returns how many questions an agent that measures `peers` asks in an hour, once it has measured each of them.
double questions_per_hour(size_t peers);

}  // namespace gleaner::probe
