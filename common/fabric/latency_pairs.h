// LatencyPairs are the latencies between some nodes, of what the nodes' agents have measured (docs/agent.md#latencies).
// Rules bound what a lying or faulty agent can do to them. Pure.
//
// - Of the two directions of a pair the greater one counts (Luo §4.2.1), so no agent alone makes nodes near.
// - A node whose own measurements differ from those of its peers, in the median by more than kPlausible, is not
//   plausible: its peers' measurements count alone. So no agent alone makes its node far from others.
// - A latency to a node without a profile does not count, since no other agent can confirm or refute it.
// - If all pairs are measured, the triangles bound each latency: |l(i,k) - l(k,j)| <= l(i,j) <= l(i,k) + l(k,j), in the
//   median over all k. A node most of whose latencies exceed a bound by kPlausible is not plausible either: its agent
//   may falsify its answers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/api/node_profile.h"
#include "common/ranks/embedding.h"
#include "common/ranks/linked_groups.h"

namespace gleaner::fabric {

using Profiles = absl::flat_hash_map<std::string, std::shared_ptr<const api::NodeProfile>>;  // by node

inline constexpr absl::Duration kLatencyLife = absl::Hours(48);

// Returns whether an entry of a profile counts: it is younger than kLatencyLife, and not further in the future, as
// after the clock of its node was wrong.
inline bool counts(absl::Time observed, absl::Time now) { return absl::AbsDuration(now - observed) <= kLatencyLife; }

inline constexpr double kPlausible = 2;  // a factor

struct LatencyPairs {
  std::vector<ranks::PairDistance> pairs;  // in seconds; hosts are places of nodes
  std::vector<uint32_t> measured;          // places of the nodes with a latency, ascending
  std::vector<uint32_t> implausible;       // places, ascending

  // Returns the pairs with hosts that are places in `measured`.
  std::vector<ranks::PairDistance> among_measured() const;
  // Returns whether all pairs of the measured nodes are known.
  bool is_full() const { return pairs.size() == measured.size() * (measured.size() - 1) / 2; }
};

// Returns the distances of these pairs, both ways; 0 for other pairs.
ranks::Distances distances_of(uint32_t hosts, std::span<const ranks::PairDistance> pairs);

// Returns the latencies between these nodes.
LatencyPairs latency_pairs(const std::vector<std::string>& nodes, const Profiles& profiles, absl::Time now);

}  // namespace gleaner::fabric
