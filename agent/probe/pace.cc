#include "agent/probe/pace.h"

#include <algorithm>

#include "agent/probe/latency_packet.h"

namespace gleaner::probe {
namespace {

constexpr double kHeaderBytes = 14 + 40 + 8;  // Ethernet, IPv6 and UDP
constexpr double kPauseBits = 2 * 8 * (kHeaderBytes + sizeof(LatencyPacket));
constexpr absl::Duration kTimeOfPeer = absl::Minutes(20);

}  // namespace

Pace pace_for(double bits_per_second) {
  if (bits_per_second <= 0) bits_per_second = kUnknownBitsPerSecond;
  Pace pace;
  pace.pause = std::max(kLeastPause, absl::Seconds(kPauseBits / (kBandwidthShare * bits_per_second)));
  const auto fitting = static_cast<double>(absl::FDivDuration(kAskingTime, pace.pause));
  pace.questions = static_cast<uint32_t>(std::clamp<double>(fitting, 1, kQuestions));
  return pace;
}

absl::Duration renewal_period(size_t peers) {
  return std::max(absl::Hours(1), static_cast<int64_t>(peers) * kTimeOfPeer);
}

double questions_per_hour(size_t peers) {
  return static_cast<double>(peers) * kQuestions / absl::ToDoubleHours(renewal_period(peers));
}

}  // namespace gleaner::probe
