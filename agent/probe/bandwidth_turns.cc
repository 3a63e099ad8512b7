#include "agent/probe/bandwidth_turns.h"

#include <algorithm>
#include <utility>

#include "common/base/backoff.h"

namespace gleaner::probe {

void BandwidthTurns::set_peers(std::vector<std::string> peers, const absl::flat_hash_set<std::string>& grouped) {
  peers_ = std::move(peers);
  std::erase_if(entries_, [&](const auto& entry) { return !grouped.contains(entry.first); });
  absl::erase_if(failures_, [&](const auto& failure) { return !grouped.contains(failure.first); });
}

void BandwidthTurns::restore(const std::vector<api::PeerBandwidth>& entries) {
  for (const api::PeerBandwidth& entry : entries) {
    entries_[entry.node] = {{entry.bits_per_second}, entry.observed_time};
  }
}

std::optional<std::string> BandwidthTurns::next(Now now) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.observed_time < now.wall - kLongestAge; });
  std::optional<std::string> chosen;
  absl::Time oldest = absl::InfiniteFuture();
  for (const std::string& peer : peers_) {
    const auto failure = failures_.find(peer);
    if (failure != failures_.end() && now.monotonic < failure->second.at) continue;
    const auto entry = entries_.find(peer);
    const absl::Time observed = entry == entries_.end() ? absl::InfinitePast() : entry->second.observed_time;
    const bool is_due = now.wall - observed >= kRenewal || observed > now.wall;  // the clock may have been set back
    if (!is_due || observed >= oldest) continue;
    chosen = peer;
    oldest = observed;
  }
  return chosen;
}

void BandwidthTurns::succeeded(const std::string& node, double bits_per_second, absl::Time now) {
  failures_.erase(node);
  Entry& entry = entries_[node];
  entry.measurements.push_back(bits_per_second);
  if (entry.measurements.size() > kKept) entry.measurements.erase(entry.measurements.begin());
  entry.observed_time = now;
}

void BandwidthTurns::failed(const std::string& node, absl::Duration now) {
  Retry& retry = failures_[node];
  retry.pause = next_pause(retry.pause, kFirstRetry, kRenewal);
  retry.at = now + retry.pause;
}

std::vector<api::PeerBandwidth> BandwidthTurns::entries() const {
  std::vector<api::PeerBandwidth> entries;
  for (const auto& [node, entry] : entries_) {
    entries.push_back({node, std::ranges::max(entry.measurements), entry.observed_time});
  }
  std::ranges::stable_sort(entries, std::ranges::greater(), &api::PeerBandwidth::observed_time);
  if (entries.size() > kMostBandwidths) entries.resize(kMostBandwidths);
  std::ranges::sort(entries, {}, &api::PeerBandwidth::node);
  return entries;
}

Coverage BandwidthTurns::coverage(absl::Time now) const {
  Coverage coverage{.peers = peers_.size()};
  for (const std::string& peer : peers_) {
    const auto entry = entries_.find(peer);
    if (entry == entries_.end()) {
      ++coverage.missing;
    } else {
      coverage.oldest = std::max(coverage.oldest, now - entry->second.observed_time);
    }
  }
  return coverage;
}

}  // namespace gleaner::probe
