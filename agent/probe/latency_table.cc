#include "agent/probe/latency_table.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_set.h"

namespace gleaner::probe {

void LatencyTable::set_node(const std::string& host, const std::string& node) {
  node_of_[host] = node;
  if (!is_unique(node)) entries_.erase(node);
}

void LatencyTable::put(const api::PeerLatency& entry) {
  if (is_unique(entry.node)) entries_[entry.node] = entry;
}

// An answer comes once in some milliseconds at most, so this may be slow.
bool LatencyTable::is_unique(const std::string& node) const {
  return std::ranges::count(node_of_, node, [](const auto& named) { return named.second; }) < 2;
}

const api::PeerLatency* LatencyTable::find(const std::string& host) const {
  const auto node = node_of_.find(host);
  if (node == node_of_.end()) return nullptr;
  const auto entry = entries_.find(node->second);
  return entry == entries_.end() ? nullptr : &entry->second;
}

bool LatencyTable::is_due(const std::string& host, absl::Time now, absl::Duration renewal) const {
  const api::PeerLatency* entry = find(host);
  return entry == nullptr || entry->observed_time > now || now - entry->observed_time >= renewal;
}

void LatencyTable::forget(const AgentOrder& agents, absl::Time oldest) {
  const absl::flat_hash_set<std::string> known(agents.hosts.begin(), agents.hosts.end());
  absl::erase_if(node_of_, [&](const auto& named) { return !known.contains(named.first); });
  absl::erase_if(entries_, [&](const auto& entry) { return entry.second.observed_time < oldest; });
}

std::vector<api::PeerLatency> LatencyTable::entries() const {
  std::vector<api::PeerLatency> all;
  for (const auto& [node, entry] : entries_) all.push_back(entry);
  std::ranges::sort(all, {}, [](const api::PeerLatency& entry) { return std::tie(entry.round_trip, entry.node); });
  if (all.size() > kMostEntries) all.resize(kMostEntries);
  return all;
}

}  // namespace gleaner::probe
