// LatencyTable has the latest measurement of each peer, and the names of peers' nodes. Pure; used by one thread.
//
// Entries are kept by node, and found by host while the host's node is known. A measurement without an answer changes
// no entry, so an entry ages until the peer answers again. An entry from the future, as after a clock was set back, is
// due for renewal.
//
// A node's name is what its agent says. If the agents of two hosts say the same, one of them lies, or two clusters have
// nodes with one name: then the node has no entry.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "agent/probe/choose_peers.h"
#include "common/api/node_profile.h"

namespace gleaner::probe {

inline constexpr size_t kMostEntries = 256;  // that entries() returns

class LatencyTable {
 public:
  void set_node(const std::string& host, const std::string& node);
  const Texts& node_of() const { return node_of_; }  // by host

  // Stores an entry in place of an earlier one of its node, unless several hosts have the node's name.
  void put(const api::PeerLatency& entry);
  const api::PeerLatency* find(const std::string& host) const;  // null: not measured
  // Returns whether the host was never measured, or not within `renewal` before `now`.
  bool is_due(const std::string& host, absl::Time now, absl::Duration renewal) const;

  // Forgets the names of hosts that are not in `agents`, and entries that are older than `oldest`.
  void forget(const AgentOrder& agents, absl::Time oldest);

  // Returns the entries, the nearest first, and of these the first kMostEntries.
  std::vector<api::PeerLatency> entries() const;

 private:
  bool is_unique(const std::string& node) const;

  Texts node_of_;
  absl::flat_hash_map<std::string, api::PeerLatency> entries_;  // by node
};

}  // namespace gleaner::probe
