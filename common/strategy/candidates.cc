#include "common/strategy/candidates.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/cost.h"
#include "common/plan/schedule_name.h"
#include "common/plan/uplinks.h"
#include "common/strategy/racks.h"
#include "common/topology/paths.h"

namespace gleaner::strategy {
namespace {

constexpr uint64_t kProbeBytes = uint64_t{1} << 30;  // large, so that rounding to whole bytes does not count
constexpr size_t kMostFactorizations = 32;

// The network, and the hosts of the workers, for the models of all candidates.
struct Network {
  const topology::Topology& topology;
  const topology::Paths paths;
  std::vector<uint32_t> host_of;  // by rank
};

// Returns the seconds per byte of the vector that the busiest channel needs for all messages of the schedule.
absl::StatusOr<double> busiest_channel(const collective::Schedule& schedule, const Network& network) {
  GLN_ASSIGN_OR_RETURN(const auto patterns, collective::step_patterns(schedule));
  std::vector<double> load(network.topology.channel_count());  // in vectors
  std::vector<uint32_t> path;
  for (const collective::StepPattern& pattern : patterns) {
    for (const collective::Transfer& transfer : pattern.transfers) {
      const uint32_t from = network.host_of[transfer.from], to = network.host_of[transfer.to];
      path.clear();
      network.paths.append_path(from, to, collective::flow_between(from, to), path);
      const double share = static_cast<double>(transfer.chunks) / schedule.chunks;
      for (const uint32_t channel : path) load[channel] += share * static_cast<double>(pattern.steps.size());
    }
  }
  double busiest = 0;
  for (uint32_t channel = 0; channel < load.size(); ++channel) {
    busiest = std::max(busiest, load[channel] * 8 / network.topology.bits_per_second(channel));
  }
  return busiest;
}

// Returns the candidate of a schedule, on the hosts that its entry in `mapped` says, if it has one.
absl::StatusOr<Candidate> candidate_of(const collective::ScheduleRequest& request, Network& network,
                                       std::span<const plan::ScheduleParameters> mapped) {
  plan::ScheduleParameters parameters{request.algorithm, request.stages, request.radix, {}};
  std::iota(network.host_of.begin(), network.host_of.end(), 0);
  for (const plan::ScheduleParameters& entry : mapped) {
    if (entry.algorithm != parameters.algorithm || entry.stages != parameters.stages ||
        entry.radix != parameters.radix) {
      continue;
    }
    parameters = entry;
    for (uint32_t worker = 0; worker < entry.ranks.size(); ++worker) network.host_of[entry.ranks[worker]] = worker;
  }
  GLN_ASSIGN_OR_RETURN(const collective::Schedule schedule, collective::make_schedule(request));
  GLN_ASSIGN_OR_RETURN(const auto empty,
                       collective::cost(schedule, network.topology, network.paths, network.host_of, 0));
  GLN_ASSIGN_OR_RETURN(const auto large,
                       collective::cost(schedule, network.topology, network.paths, network.host_of, kProbeBytes));
  GLN_ASSIGN_OR_RETURN(const double stream, busiest_channel(schedule, network));
  const double alone = (large.seconds - empty.seconds) / static_cast<double>(kProbeBytes);
  return Candidate{std::move(parameters), {empty.seconds, alone, stream}};
}

absl::StatusOr<Candidate> summers_of(const Network& network, uint32_t workers, uint32_t summers) {
  GLN_ASSIGN_OR_RETURN(const plan::UplinkBound bound,
                       plan::bound_with_uplinks(network.topology, workers, summers, kProbeBytes));
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, plan::fleet_of(network.topology, workers, summers));
  const double slowest = *std::min_element(fleet.worker_bits_per_second.begin(), fleet.worker_bits_per_second.end());
  std::optional<double> alone;
  for (uint32_t member = 0; member < workers + summers && workers > 1; ++member) {
    const double peers = member < workers ? workers - 1 : workers;
    const double seconds = 2 * std::max(peers * 8 / fleet.bits_per_second(member), 8 / slowest);
    alone = std::min(alone.value_or(seconds), seconds);
  }
  const double latency = workers > 1 ? 2 * farthest_latency(network.topology, network.paths, workers, workers + summers) : 0;
  return Candidate{{plan::kSummersStrategy},
                   {latency, alone.value_or(0), bound.seconds / static_cast<double>(kProbeBytes)}};
}

// Appends the ordered factorizations of `rest` into factors of 2 and more, each with `prefix` before it.
void append_factorizations(uint32_t rest, std::vector<uint32_t>& prefix, std::vector<std::vector<uint32_t>>& all) {
  if (all.size() == kMostFactorizations) return;
  if (rest == 1) return all.push_back(prefix);
  for (uint32_t factor = 2; factor <= rest; ++factor) {
    if (rest % factor != 0) continue;
    prefix.push_back(factor);
    append_factorizations(rest / factor, prefix, all);
    prefix.pop_back();
  }
}

// Returns the requests for schedules that may serve n ranks.
std::vector<collective::ScheduleRequest> requests(const topology::Topology& topology, uint32_t workers) {
  std::vector<collective::ScheduleRequest> all;
  for (const char* const algorithm : {"ring", "halving-doubling", "double-tree", "bcube"}) {
    all.push_back({algorithm, workers});
  }
  std::vector<std::vector<uint32_t>> factorizations;
  std::vector<uint32_t> prefix;
  append_factorizations(workers, prefix, factorizations);
  for (std::vector<uint32_t>& stages : factorizations) {
    if (stages.size() > 1) all.push_back({"blueconnect", workers, std::move(stages)});
  }
  if (const std::vector<uint32_t> groups = equal_stages(racks_of(topology, workers)); !groups.empty()) {
    all.push_back({"racks", workers, groups});
    all.push_back({"two-level", workers, groups});
  }
  return all;
}

}  // namespace

double Model::seconds(double bytes, double partition_bytes) const {
  const double alone = std::min(bytes, partition_bytes);
  return latency_seconds + alone_seconds_per_byte * alone + stream_seconds_per_byte * (bytes - alone);
}

double farthest_latency(const topology::Topology& topology, const topology::Paths& paths, uint32_t workers,
                        uint32_t members) {
  double most = 0;
  std::vector<uint32_t> path;
  for (uint32_t from = 0; from < workers; ++from) {
    for (uint32_t to = 0; to < members; ++to) {
      path.clear();
      paths.append_path(from, to, collective::flow_between(from, to), path);
      double latency = 0;
      for (const uint32_t channel : path) latency += topology.latency_seconds(channel);
      most = std::max(most, latency);
    }
  }
  return most;
}

absl::StatusOr<std::vector<Candidate>> candidates(const topology::Topology& topology, uint32_t workers,
                                                  uint32_t summers,
                                                  std::span<const plan::ScheduleParameters> mapped) {
  Network network{topology, topology::Paths(topology), std::vector<uint32_t>(workers)};
  GLN_ASSIGN_OR_RETURN(Candidate by_summers, summers_of(network, workers, summers));
  std::vector<Candidate> all = {std::move(by_summers)};
  if (workers == 1) return all;
  for (const collective::ScheduleRequest& request : requests(topology, workers)) {
    // An algorithm that does not serve this number of ranks, or whose schedule would be too large, is no candidate.
    if (auto candidate = candidate_of(request, network, mapped); candidate.ok()) all.push_back(*std::move(candidate));
  }
  return all;
}

size_t fastest(std::span<const Candidate> candidates, double bytes, double partition_bytes) {
  const auto faster = [&](const Candidate& a, const Candidate& b) {
    return a.model.seconds(bytes, partition_bytes) < b.model.seconds(bytes, partition_bytes);
  };
  return static_cast<size_t>(std::min_element(candidates.begin(), candidates.end(), faster) - candidates.begin());
}

}  // namespace gleaner::strategy
