#include "common/fabric/latency_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "common/base/median.h"

namespace gleaner::fabric {
namespace {

constexpr size_t kFewestPeers = 3;  // with fewer, nobody can tell which of two agents is wrong

// The measurements of both agents of a pair, in seconds; 0: none. First that of the agent with the lower place.
using BothWays = std::array<double, 2>;
using Measured = std::map<std::pair<uint32_t, uint32_t>, BothWays>;

Measured read(const std::vector<std::string>& nodes, const Profiles& profiles, absl::Time now) {
  absl::flat_hash_map<std::string, uint32_t> places;
  for (uint32_t place = 0; place < nodes.size(); ++place) places[nodes[place]] = place;
  Measured measured;
  for (uint32_t from = 0; from < nodes.size(); ++from) {
    const auto profile = profiles.find(nodes[from]);
    if (profile == profiles.end()) continue;
    for (const api::PeerLatency& peer : profile->second->status.peers) {
      const auto to = places.find(peer.node);
      if (to == places.end() || to->second == from || peer.round_trip <= absl::ZeroDuration()) continue;
      if (!profiles.contains(peer.node) || !counts(peer.observed_time, now)) continue;
      BothWays& ways = measured[std::minmax(from, to->second)];
      ways[from < to->second ? 0 : 1] = absl::ToDoubleSeconds(peer.round_trip) / 2;
    }
  }
  return measured;
}

// Returns the nodes whose own measurements differ from those of their peers.
std::set<uint32_t> liars(const Measured& measured, uint32_t nodes) {
  std::vector<std::vector<double>> differences(nodes);
  for (const auto& [pair, ways] : measured) {
    if (ways[0] <= 0 || ways[1] <= 0) continue;
    const double difference = std::log(ways[0] / ways[1]);
    differences[pair.first].push_back(difference);
    differences[pair.second].push_back(-difference);
  }
  std::set<uint32_t> found;
  for (uint32_t node = 0; node < nodes; ++node) {
    if (differences[node].size() < kFewestPeers) continue;
    if (std::abs(upper_median(differences[node])) > std::log(kPlausible)) found.insert(node);
  }
  return found;
}

double latency_of(const std::pair<uint32_t, uint32_t>& pair, const BothWays& ways, const std::set<uint32_t>& liars) {
  const bool first_lies = liars.contains(pair.first), second_lies = liars.contains(pair.second);
  if (first_lies && !second_lies && ways[1] > 0) return ways[1];
  if (second_lies && !first_lies && ways[0] > 0) return ways[0];
  return std::max(ways[0], ways[1]);
}

// Bounds the latencies between all pairs of `hosts` hosts by triangles. Returns the hosts most of whose latencies it
// has changed by kPlausible.
std::vector<uint32_t> bound_by_triangles(std::vector<ranks::PairDistance>& pairs, uint32_t hosts) {
  if (hosts < kFewestPeers + 2) return {};
  const ranks::Distances latencies = distances_of(hosts, pairs);
  std::vector<uint32_t> changed(hosts, 0);
  std::vector<double> least, most;
  for (ranks::PairDistance& pair : pairs) {
    least.clear();
    most.clear();
    for (uint32_t k = 0; k < hosts; ++k) {
      if (k == pair.a || k == pair.b) continue;
      const double one = latencies.at(pair.a, k), other = latencies.at(k, pair.b);
      least.push_back(std::abs(one - other));
      most.push_back(one + other);
    }
    const double low = upper_median(least), high = upper_median(most);
    const double before = std::exchange(pair.distance, std::clamp(pair.distance, low, std::max(low, high)));
    if (pair.distance > kPlausible * before || before > kPlausible * pair.distance) {
      ++changed[pair.a];
      ++changed[pair.b];
    }
  }
  std::vector<uint32_t> found;
  for (uint32_t host = 0; host < hosts; ++host) {
    if (2 * changed[host] > hosts - 1) found.push_back(host);
  }
  return found;
}

}  // namespace

std::vector<ranks::PairDistance> LatencyPairs::among_measured() const {
  std::map<uint32_t, uint32_t> host_of;
  for (const uint32_t place : measured) host_of.emplace(place, static_cast<uint32_t>(host_of.size()));
  std::vector<ranks::PairDistance> renamed = pairs;
  for (ranks::PairDistance& pair : renamed) pair = {host_of[pair.a], host_of[pair.b], pair.distance};
  return renamed;
}

ranks::Distances distances_of(uint32_t hosts, std::span<const ranks::PairDistance> pairs) {
  ranks::Distances distances(hosts);
  for (const ranks::PairDistance& pair : pairs) {
    distances.at(pair.a, pair.b) = distances.at(pair.b, pair.a) = pair.distance;
  }
  return distances;
}

LatencyPairs latency_pairs(const std::vector<std::string>& nodes, const Profiles& profiles, absl::Time now) {
  const Measured measured = read(nodes, profiles, now);
  std::set<uint32_t> implausible = liars(measured, static_cast<uint32_t>(nodes.size())), known;
  LatencyPairs found;
  for (const auto& [pair, ways] : measured) {
    found.pairs.push_back({pair.first, pair.second, latency_of(pair, ways, implausible)});
    known.insert({pair.first, pair.second});
  }
  found.measured.assign(known.begin(), known.end());
  if (found.is_full()) {
    found.pairs = found.among_measured();
    for (const uint32_t host : bound_by_triangles(found.pairs, static_cast<uint32_t>(found.measured.size()))) {
      implausible.insert(found.measured[host]);
    }
    for (ranks::PairDistance& pair : found.pairs) {
      pair = {found.measured[pair.a], found.measured[pair.b], pair.distance};
    }
  }
  found.implausible.assign(implausible.begin(), implausible.end());
  return found;
}

}  // namespace gleaner::fabric
