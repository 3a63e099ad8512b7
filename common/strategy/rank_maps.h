// map_ranks() decides which worker has which rank in the schedules of a job whose network is known. Which ranks are
// near each other decides how many bytes cross slow links, so the map decides the time of a schedule (Luo §5). It also
// decides how many chunks each rank of two-level masters, if links differ (masters.h). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"
#include "common/collective/spec.h"
#include "common/ranks/rank_map.h"
#include "common/topology/network.h"
#include "common/topology/topology.h"

namespace gleaner::strategy {

// Where rank maps come from.
enum class RankMapSource {
  kSearch,    // common/ranks searches a map for each schedule over the cost model
  kIdentity,  // worker i has rank i
  kGiven,     // JobNetwork::host_of
};

// The times of a partition of a large tensor, simulated, or by the cost where that would take long.
struct MapTimes {
  double identity_seconds = 0;  // if worker i had rank i
  double seconds = 0;           // with the rank map
  friend bool operator==(const MapTimes&, const MapTimes&) = default;
};

// A schedule with the ranks and the masters that suit a network.
struct MappedSpec {
  collective::Spec spec;
  MapTimes times;
};

// The network of a job, as its user describes it. Hosts 0 to n - 1 are the workers, the hosts after them the CPU
// summers. Further hosts take no part.
struct JobNetwork {
  topology::Topology topology;
  RankMapSource source = RankMapSource::kSearch;
  ranks::RankMap host_of;  // with kGiven: the worker of each rank
  // The schedules whose map differs from the identity, or whose ranks master different numbers of chunks: the result of
  // map_ranks().
  std::vector<MappedSpec> mapped;
  // The switch, by its index among those of the topology, to which the link of each CPU summer leads, by the index of
  // the summer, if the topology has the hosts of the workers alone. Summers after the last one are at the first switch.
  // Nullopt: the topology has a host for each summer, too.
  std::optional<std::vector<uint32_t>> summers_at;
  // With summers_at: of a summer's link to each switch. Empty: as the first link.
  std::vector<double> summer_latency_seconds;
  bool of_probes = false;      // the topology is the tree that probes suggest (probed_racks.h)
  bool unsure_groups = false;  // ProbedTree::unsure
};

// Returns OK if the topology has a host for each member that needs one, and a given map has each of n = `workers`
// workers once.
absl::Status validate(const JobNetwork& network, uint32_t workers, uint32_t summers);

// Returns those of the schedules whose ranks should not be the workers' numbers, or whose ranks should master different
// numbers of chunks. With kIdentity there is none. An all-gather keeps the workers' numbers, since ranks then add
// contributions in the order in which owners do. InvalidArgument: a schedule can't be made, or there are more workers
// than the search takes.
absl::StatusOr<std::vector<MappedSpec>> map_ranks(const JobNetwork& network, uint32_t workers,
                                                  std::span<const collective::Spec> schedules);

// Returns the schedules that a job with this network may choose from, which are those of candidates().
absl::StatusOr<std::vector<collective::Spec>> schedules_for(const JobNetwork& network, uint32_t workers);

// Returns those of the mapped schedules that are among `schedules`.
std::vector<MappedSpec> mapped_among(std::span<const MappedSpec> mapped, std::span<const collective::Spec> schedules);

// Returns a function that simulates how long the schedule takes for one vector under a map, for a search
// (ranks::SearchOptions::seconds_of). Empty: the simulations of a search would have more than `most_messages`. The
// schedule and the network must outlive it.
std::function<absl::StatusOr<double>(const ranks::RankMap& host_of)> simulated_seconds(
    const collective::Schedule& schedule, const topology::Network& network, uint64_t bytes, uint64_t most_messages);

// Returns the times of a ring of these ranks, of all hosts of the topology, for a partition of a large tensor. Nullopt:
// there are more than kMostModelledRing hosts, or two hosts have no path.
inline constexpr uint32_t kMostModelledRing = 512;
std::optional<MapTimes> ring_times(const topology::Topology& topology, const ranks::RankMap& host_of);

// Returns what a map of ranks wins, for people: "3.10 ms -> 1.20 ms for a partition". Masters win only where partitions
// follow each other, so they are named without a time. Times of 0: the masters were chosen while the job runs, and
// nothing is modelled.
std::string describe(const collective::Spec& schedule, const MapTimes& times);

}  // namespace gleaner::strategy
