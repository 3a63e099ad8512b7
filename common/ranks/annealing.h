// Finds a rank map with a low cost (common/collective/cost.h) for any schedule and topology. Source: Luo §5.2.3, first
// stage: simulated annealing, whose neighbouring states come from the exchange of a random pair and from a permutation
// of a random sub-array, here its reversal or rotation. The search begins with the identity, and with chains in which
// each host is followed by the nearest one that is left. Pure.
//
// The search may also choose hosts: with fewer ranks than hosts, a rank may be exchanged with an unused host. With 8
// hosts or fewer it tries all maps. It never returns a map that takes longer than the identity or than one of `starts`.
// One seed gives one map on every machine, unless `go_on` stops the search.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/ranks/rank_map.h"
#include "common/topology/network.h"

namespace gleaner::ranks {

inline constexpr uint32_t kMaxSearchHosts = 2048;

// The most maps that a search times by SearchOptions::seconds_of, without its starts.
inline constexpr uint32_t kMostTimedMaps = 18;

struct SearchOptions {
  uint64_t seed = 1;
  // Number of maps to evaluate; 0: chosen by the number of messages. A core takes about 1 s for 64 hosts, and less than
  // 20 s for 512 hosts.
  uint64_t iterations = 0;
  std::vector<RankMap> starts;  // maps to begin with, beside the identity
  // Returns how long a map really takes, as the simulator says it. The cost leads the search, and of its best maps the
  // one that takes least time is the result. It is called a few times. Empty: the cost is the time.
  std::function<absl::StatusOr<double>(const RankMap& host_of)> seconds_of;
  // Called after each 256 iterations or so with the part of the search that is done, from 0 to 1. Returns whether the
  // search should go on; else the best map so far is the result. Empty: the search goes on.
  std::function<bool(double done)> go_on;
};

enum class Proof {
  kNone,   // a better map may exist
  kAll,    // the cost of all maps was computed
  kBound,  // no map can have a lower cost: each message has the least latency and the fastest links
};

struct FoundMap {
  RankMap host_of;
  double seconds = 0;  // by SearchOptions::seconds_of, as identity_seconds
  double identity_seconds = 0;
  uint64_t evaluated = 0;  // number of maps
  Proof proof = Proof::kNone;
  bool stopped = false;  // by go_on
};

// `bytes`: of the whole vector. InvalidArgument: there are more than kMaxSearchHosts hosts, there are more ranks than
// hosts, a start is no map, or a send of the schedule has no receive. Also errors of `seconds_of`.
absl::StatusOr<FoundMap> find_rank_map(const collective::Schedule& schedule, const topology::Network& network,
                                       uint64_t bytes, const SearchOptions& options);

}  // namespace gleaner::ranks
