#include "common/collective/cost.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/longest_path.h"

namespace gleaner::collective {
namespace {

absl::Status check_map(uint32_t ranks, uint32_t hosts, const std::vector<uint32_t>& host_of) {
  if (host_of.size() != ranks) {
    return absl::InvalidArgumentError(absl::StrCat("the rank map has ", host_of.size(), " ranks, the schedule ", ranks,
                                                   "; give a host to each rank"));
  }
  constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> rank_of(hosts, kNone);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t host = host_of[rank];
    if (host >= hosts) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rank map puts rank ", rank, " on host ", host, ", but the topology has ", hosts, " hosts"));
    }
    if (rank_of[host] != kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rank map puts the ranks ", rank_of[host], " and ", rank, " on host ", host));
    }
    rank_of[host] = rank;
  }
  return absl::OkStatus();
}

// Measures single steps under one rank map.
class StepCosts {
 public:
  StepCosts(const topology::Network& network, const std::vector<uint32_t>& host_of, double bits_per_chunk)
      : network_(network),
        host_of_(host_of),
        load_(network.topology.channel_count(), 0),
        flows_(network.topology.channel_count(), 0) {
    for (uint32_t channel = 0; channel < network.topology.channel_count(); ++channel) {
      seconds_per_chunk_.push_back(bits_per_chunk / network.topology.bits_per_second(channel));
    }
  }

  const std::vector<double>& seconds_per_chunk() const { return seconds_per_chunk_; }

  // Returns the cost of each step of a pattern.
  StepCost measure(const StepPattern& pattern) {
    channels_.clear();
    ends_.clear();
    processors_.clear();
    for (const Transfer& transfer : pattern.transfers) {
      const size_t begin = channels_.size();
      const uint32_t from = host_of_[transfer.from], to = host_of_[transfer.to];
      network_.paths.append_path(from, to, flow_between(from, to), channels_);
      ends_.push_back(channels_.size());
      processors_.push_back(transfer.messages * (overhead_seconds(from) + overhead_seconds(to)));
      for (size_t i = begin; i < channels_.size(); ++i) {
        load_[channels_[i]] += transfer.chunks;
        flows_[channels_[i]] += transfer.messages;
      }
    }
    const StepCost cost = slowest();
    for (const uint32_t channel : channels_) load_[channel] = flows_[channel] = 0;
    return cost;
  }

 private:
  // Returns the cost of the step whose loads are counted.
  StepCost slowest() const {
    StepCost cost;
    double most = -1;  // seconds of the most loaded channel
    size_t at = 0;
    for (size_t i = 0; i < ends_.size(); ++i) {
      double latency = processors_[i], transfer = 0;
      for (; at < ends_[i]; ++at) {
        const uint32_t channel = channels_[at];
        const double seconds = static_cast<double>(load_[channel]) * seconds_per_chunk_[channel];
        latency += network_.topology.latency_seconds(channel);
        transfer = std::max(transfer, seconds);
        if (seconds <= most) continue;
        most = seconds;
        cost.worst_channel = channel;
        cost.flows = flows_[channel];
      }
      cost.seconds = std::max(cost.seconds, latency + transfer);
    }
    return cost;
  }

  double overhead_seconds(uint32_t host) const { return network_.topology.hosts()[host].overhead_seconds; }

  const topology::Network& network_;
  const std::vector<uint32_t>& host_of_;   // by rank
  std::vector<double> seconds_per_chunk_;  // by channel
  std::vector<uint64_t> load_;             // by channel, in chunks; all 0 between calls
  std::vector<uint32_t> flows_;            // by channel; all 0 between calls
  std::vector<uint32_t> channels_;         // the paths of all transfers of the step
  std::vector<size_t> ends_;               // by transfer: the end of its path in channels_
  std::vector<double> processors_;         // by transfer: the overhead of both ends
};

}  // namespace

std::vector<double> overheads_of(const topology::Topology& topology, const std::vector<uint32_t>& host_of) {
  std::vector<double> overheads;
  for (const uint32_t host : host_of) overheads.push_back(topology.hosts()[host].overhead_seconds);
  if (std::ranges::all_of(overheads, [](double overhead) { return overhead == 0; })) overheads.clear();
  return overheads;
}

absl::StatusOr<Cost> cost(const Schedule& schedule, const topology::Network& network,
                          const std::vector<uint32_t>& host_of, uint64_t bytes) {
  GLN_ASSIGN_OR_RETURN(const std::vector<StepPattern> patterns, step_patterns(schedule));
  return cost(schedule, patterns, network, host_of, bytes);
}

absl::StatusOr<Cost> cost(const Schedule& schedule, const std::vector<StepPattern>& patterns,
                          const topology::Network& network, const std::vector<uint32_t>& host_of, uint64_t bytes) {
  GLN_RETURN_IF_ERROR(check_map(schedule.ranks, network.topology.host_count(), host_of));
  StepCosts costs(network, host_of, 8.0 * static_cast<double>(bytes) / schedule.chunks_per_block());
  Cost cost;
  cost.steps.resize(schedule.steps);
  for (const StepPattern& pattern : patterns) {
    const StepCost step_cost = costs.measure(pattern);
    for (const uint32_t step : pattern.steps) cost.steps[step] = step_cost;
  }
  LongestPath longest(patterns, schedule.ranks, network.topology.channel_count());
  std::vector<uint32_t> path;
  const auto path_of = [&](const LongestPath::Connection& connection) {
    const uint32_t from = host_of[connection.from], to = host_of[connection.to];
    path.clear();
    network.paths.append_path(from, to, flow_between(from, to), path);
    double latency = 0;
    for (const uint32_t channel : path) latency += network.topology.latency_seconds(channel);
    return LongestPath::Path{path, latency};
  };
  const std::vector<double> overheads = overheads_of(network.topology, host_of);
  cost.seconds = longest.evaluate(path_of, costs.seconds_per_chunk(), overheads).seconds;
  return cost;
}

}  // namespace gleaner::collective
