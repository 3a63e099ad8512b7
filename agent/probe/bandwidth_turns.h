// BandwidthTurns decides which peer an agent measures next, and keeps the bandwidths. It is the protocol core of
// BandwidthProbe. Pure; used by one thread at a time.
//
// A peer is due if it has no entry, or kRenewal after its last measurement. An entry has the greatest of the last
// kKept measurements, since each is a lower bound: others may use the path meanwhile. A failed measurement changes no
// entry. The peer is tried again after kFirstRetry, and after each further failure twice as late, up to kRenewal.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "agent/probe/coverage.h"
#include "common/api/node_profile.h"

namespace gleaner::probe {

inline constexpr size_t kMostBandwidths = 64;  // that entries() returns

class BandwidthTurns {
 public:
  static constexpr absl::Duration kRenewal = absl::Hours(4);
  static constexpr absl::Duration kFirstRetry = absl::Minutes(10);
  static constexpr absl::Duration kLongestAge = absl::Hours(48);  // of an entry
  static constexpr size_t kKept = 3;

  struct Now {
    absl::Time wall;           // of entries
    absl::Duration monotonic;  // for pauses
  };

  // Sets the nodes to measure, the most important first, and those in groups of the Topology. Drops entries of nodes
  // that are in no group.
  void set_peers(std::vector<std::string> peers, const absl::flat_hash_set<std::string>& grouped);
  // Stores entries that an earlier process of this agent has measured.
  void restore(const std::vector<api::PeerBandwidth>& entries);

  // Drops entries that are too old, and returns the peer that is to be measured now, if one is due: the first one
  // without an entry, or else the one whose entry is oldest.
  std::optional<std::string> next(Now now);
  void succeeded(const std::string& node, double bits_per_second, absl::Time now);
  void failed(const std::string& node, absl::Duration now);

  // Returns the latest kMostBandwidths entries, in alphabetical order of their nodes.
  std::vector<api::PeerBandwidth> entries() const;
  Coverage coverage(absl::Time now) const;

 private:
  struct Entry {
    std::vector<double> measurements;  // in bits per second, the latest last
    absl::Time observed_time;
  };
  struct Retry {
    absl::Duration pause, at;
  };

  std::vector<std::string> peers_;
  std::map<std::string, Entry> entries_;              // by node
  absl::flat_hash_map<std::string, Retry> failures_;  // by node, of those that failed last
};

}  // namespace gleaner::probe
