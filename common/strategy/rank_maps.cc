#include "common/strategy/rank_maps.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/collective/algorithms.h"
#include "common/collective/cost.h"
#include "common/collective/messages.h"
#include "common/collective/summary.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/partitioner.h"
#include "common/plan/uplinks.h"
#include "common/ranks/annealing.h"
#include "common/ranks/hdrm.h"
#include "common/strategy/candidates.h"
#include "common/strategy/masters.h"
#include "common/strategy/places.h"
#include "common/strategy/rack_times.h"
#include "common/topology/network.h"
#include "common/topology/subset.h"

namespace gleaner::strategy {
namespace {

constexpr uint64_t kLargeTensorBytes = uint64_t{1} << 30;
// A job with --strategy auto needs about 20 searches, which together take some seconds. With more hosts each iteration
// takes longer, so there are fewer of them.
constexpr uint64_t kIterations = 20'000;
constexpr uint64_t kHostsOfAllIterations = 64;
constexpr double kLeastGainOfMasters = 0.05;
constexpr uint64_t kMostMessages = 1 << 17;  // of the simulations for one schedule
constexpr double kLeastGain = 1e-3;          // a map that wins less is not worth its name in logs

// The workers' part of the network, and maps that a search begins with.
struct Part {
  const topology::Network& network;
  uint64_t partition_bytes;
  std::optional<ranks::RankMap> by_rack;
};

struct Timed {
  ranks::RankMap host_of;
  MapTimes times;
};

absl::StatusOr<Timed> search(const collective::Schedule& schedule, const Part& part) {
  ranks::SearchOptions options;
  const uint64_t hosts = std::max<uint64_t>(part.network.topology.host_count(), kHostsOfAllIterations);
  options.iterations = kIterations * kHostsOfAllIterations / hosts;
  options.seconds_of = simulated_seconds(schedule, part.network, part.partition_bytes, kMostMessages);
  if (part.by_rack.has_value()) options.starts.push_back(*part.by_rack);
  if (auto map = ranks::hdrm_start(schedule, part.network.topology)) options.starts.push_back(*std::move(map));
  auto found = ranks::find_rank_map(schedule, part.network, part.partition_bytes, options);
  if (!found.ok()) return absl::InvalidArgumentError(absl::StrCat(found.status().message(), "; keep the identity"));
  return Timed{std::move(found->host_of), {found->identity_seconds, found->seconds}};
}

absl::StatusOr<Timed> time(const collective::Schedule& schedule, const Part& part, const ranks::RankMap& map) {
  const auto simulated = simulated_seconds(schedule, part.network, part.partition_bytes, kMostMessages);
  const auto seconds_of = [&](const ranks::RankMap& host_of) -> absl::StatusOr<double> {
    if (simulated) return simulated(host_of);
    GLN_ASSIGN_OR_RETURN(const auto cost, collective::cost(schedule, part.network, host_of, part.partition_bytes));
    return cost.seconds;
  };
  Timed timed{map, {}};
  GLN_ASSIGN_OR_RETURN(timed.times.identity_seconds, seconds_of(ranks::identity(schedule.ranks)));
  GLN_ASSIGN_OR_RETURN(timed.times.seconds, seconds_of(map));
  return timed;
}

// Gives more chunks of two-level to ranks with faster links, if links differ.
void weigh_masters(const collective::Schedule& schedule, const std::vector<double>& bits_per_second,
                   const ranks::RankMap& host_of, collective::Spec& spec) {
  if (spec.algorithm != "two-level") return;
  const collective::Groups& groups = schedule.stages[0];
  const uint32_t chunks = kChunksOfEachRank * schedule.ranks;
  std::vector<double> by_rank;
  for (const uint32_t host : host_of) by_rank.push_back(bits_per_second[host]);
  collective::MasterCounts counts = quicktune(groups, chunks, by_rank);
  const double evenly = longest_time(even_masters(groups, chunks), groups, by_rank);
  if (longest_time(counts, groups, by_rank) >= evenly * (1 - kLeastGainOfMasters)) return;
  spec.masters = std::move(counts);
}

std::vector<uint32_t> inverse(const ranks::RankMap& host_of) {
  std::vector<uint32_t> rank_of(host_of.size());
  for (uint32_t rank = 0; rank < host_of.size(); ++rank) rank_of[host_of[rank]] = rank;
  return rank_of;
}

// Returns the hosts in the order of their racks; nothing without racks.
std::optional<ranks::RankMap> map_by_rack(const topology::Topology& topology) {
  ranks::RankMap map;
  for (const auto& rack : racks_of(topology, topology.host_count())) map.insert(map.end(), rack.begin(), rack.end());
  return map.empty() ? std::nullopt : std::optional(std::move(map));
}

}  // namespace

absl::Status validate(const JobNetwork& network, uint32_t workers, uint32_t summers) {
  const bool has_summers = !network.summers_at.has_value();
  GLN_RETURN_IF_ERROR(check_room(network.topology, workers, has_summers ? summers : 0));
  if (network.source != RankMapSource::kGiven) return absl::OkStatus();
  return ranks::check_map(network.host_of, workers, workers);
}

absl::StatusOr<std::vector<MappedSpec>> map_ranks(const JobNetwork& network, uint32_t workers,
                                                  std::span<const collective::Spec> schedules) {
  std::vector<MappedSpec> mapped;
  if (network.source == RankMapSource::kIdentity || workers == 1) return mapped;
  GLN_ASSIGN_OR_RETURN(topology::Topology hosts, topology::subset(network.topology, ranks::identity(workers)));
  const topology::Network part = topology::make_network(std::move(hosts));
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, plan::fleet_of(part.topology, workers, 0));
  const uint64_t by_default = plan::default_partition_bytes(fleet, kLargeTensorBytes);
  Part all{part, by_default, map_by_rack(part.topology)};
  for (collective::Spec spec : schedules) {
    GLN_ASSIGN_OR_RETURN(const collective::Schedule schedule, collective::make_schedule(spec, workers));
    if (schedule.postcondition == collective::Postcondition::kAllGather) continue;
    all.partition_bytes = plan::sliced_partition_bytes(by_default, collective::slices_per_vector(schedule));
    GLN_ASSIGN_OR_RETURN(Timed timed, network.source == RankMapSource::kSearch ? search(schedule, all)
                                                                               : time(schedule, all, network.host_of));
    MapTimes& times = timed.times;
    const bool gains = times.seconds < times.identity_seconds * (1 - kLeastGain);
    if (network.source == RankMapSource::kSearch && !gains) {
      timed.host_of = ranks::identity(workers);
      times.seconds = times.identity_seconds;
    }
    weigh_masters(schedule, fleet.worker_bits_per_second, timed.host_of, spec);
    const bool is_identity = timed.host_of == ranks::identity(workers);
    if (is_identity && spec.masters.empty()) continue;
    if (!is_identity) spec.rank_of = inverse(timed.host_of);
    mapped.push_back({std::move(spec), times});
  }
  return mapped;
}

absl::StatusOr<std::vector<collective::Spec>> schedules_for(const JobNetwork& network, uint32_t workers) {
  std::vector<collective::Spec> schedules;
  GLN_ASSIGN_OR_RETURN(const std::vector<Candidate> all,
                       candidates(topology::make_network(network.topology), workers, 0));
  for (const Candidate& candidate : all) {
    if (candidate.schedule.has_value()) schedules.push_back(*candidate.schedule);
  }
  return schedules;
}

std::vector<MappedSpec> mapped_among(std::span<const MappedSpec> mapped, std::span<const collective::Spec> schedules) {
  std::vector<MappedSpec> found;
  std::ranges::copy_if(mapped, std::back_inserter(found), [&](const MappedSpec& each) {
    return std::ranges::find(schedules, each.spec) != schedules.end();
  });
  return found;
}

std::function<absl::StatusOr<double>(const ranks::RankMap& host_of)> simulated_seconds(
    const collective::Schedule& schedule, const topology::Network& network, uint64_t bytes, uint64_t most_messages) {
  if (collective::message_count(schedule) * ranks::kMostTimedMaps > most_messages) return nullptr;
  return [&, bytes](const ranks::RankMap& host_of) -> absl::StatusOr<double> {
    GLN_ASSIGN_OR_RETURN(
        const netsim::RunResult run,
        netsim::run_schedule(schedule, network, host_of, netsim::uncut(static_cast<double>(bytes)), {}));
    return run.seconds;
  };
}

std::optional<MapTimes> ring_times(const topology::Topology& topology, const ranks::RankMap& host_of) {
  const uint32_t hosts = topology.host_count();
  if (hosts < 2 || hosts > kMostModelledRing) return std::nullopt;
  const topology::Network network = topology::make_network(topology);
  const auto ring = collective::make_schedule({.algorithm = "ring"}, hosts);
  const auto fleet = plan::fleet_of(network.topology, hosts, 0);
  if (!ring.ok() || !fleet.ok()) return std::nullopt;
  const uint64_t by_default = plan::default_partition_bytes(*fleet, kLargeTensorBytes);
  const Part part{network, plan::sliced_partition_bytes(by_default, collective::slices_per_vector(*ring)), {}};
  const auto timed = time(*ring, part, host_of);
  return timed.ok() ? std::optional(timed->times) : std::nullopt;
}

std::string describe(const collective::Spec& schedule, const MapTimes& times) {
  if (times == MapTimes()) return "masters by measured links";
  return absl::StrCat(format_seconds(times.identity_seconds), " -> ", format_seconds(times.seconds), " for a partition",
                      schedule.masters.local.empty() ? "" : ", masters by links");
}

}  // namespace gleaner::strategy
