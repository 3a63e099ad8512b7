#include "common/scavenger/peer_delays.h"

#include <algorithm>

namespace gleaner::scavenger {

void PeerDelays::update(uint32_t worker, absl::Duration now, absl::Duration round_trip) {
  if (round_trip <= absl::ZeroDuration()) return;
  Peer& peer = peers_[worker];
  peer.last = peer.delay.update(now, round_trip);
  peer.at = now;
}

std::optional<absl::Duration> PeerDelays::mean(absl::Duration now) const {
  absl::Duration sum;
  int64_t fresh = 0;
  for (const auto& [worker, peer] : peers_) {
    if (now - peer.at > kFresh) continue;
    sum += peer.last;
    ++fresh;
  }
  if (fresh == 0) return std::nullopt;
  return sum / fresh;
}

uint32_t encode_delay(std::optional<absl::Duration> mean) {
  if (!mean.has_value()) return 0;
  const int64_t most = UINT32_MAX - 1;
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Microseconds(*mean), 0, most)) + 1;
}

std::optional<absl::Duration> decode_delay(uint32_t link) {
  if (link == 0) return std::nullopt;
  return absl::Microseconds(link - 1);
}

}  // namespace gleaner::scavenger
