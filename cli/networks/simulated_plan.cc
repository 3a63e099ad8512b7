#include "cli/networks/simulated_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/fleet_flags.h"
#include "cli/tensor_list.h"
#include "common/base/accumulator.h"
#include "common/base/status_macros.h"
#include "common/collective/cost.h"
#include "common/netsim/fleet.h"
#include "common/plan/partitioner.h"
#include "common/plan/uplinks.h"
#include "common/ranks/rank_map.h"
#include "common/strategy/candidates.h"
#include "common/topology/subset.h"
#include "common/wire/frame.h"

namespace gleaner::cli {
namespace {

using collective::Schedule;
using topology::Topology;

absl::StatusOr<std::vector<plan::Tensor>> tensors_of(const TensorOfJob& tensor, std::optional<DataType> type) {
  auto tensors = one_tensor(tensor.bytes, type);
  if (tensors.ok()) return tensors;
  return absl::InvalidArgumentError(absl::StrCat("--bytes: ", tensors.status().message()));
}

absl::StatusOr<plan::PartitionOptions> options_of(const TensorOfJob& tensor) {
  plan::PartitionOptions options;
  if (tensor.partition_bytes == kPlannedPartitions) return options;
  GLN_ASSIGN_OR_RETURN(const auto partition_bytes, parse_partition_bytes(tensor.partition_bytes));
  options.partition_bytes = partition_bytes.value_or(0);
  return options;
}

// Returns the shares that the network's links allow.
absl::StatusOr<std::vector<double>> shares_in(const Topology& topology, const std::vector<uint32_t>& host_of,
                                              uint32_t workers, double bytes) {
  const ranks::RankMap order = ranks::with_other_hosts(host_of, topology.host_count());
  GLN_ASSIGN_OR_RETURN(const Topology members_first, topology::subset(topology, order));
  const auto summers = static_cast<uint32_t>(host_of.size() - workers);
  GLN_ASSIGN_OR_RETURN(plan::UplinkBound bound, plan::bound_with_uplinks(members_first, workers, summers, bytes));
  return std::move(bound.shares);
}

// Returns the round-trip time between the first rank and the farthest one.
double round_trip_of(const topology::Network& network, const std::vector<uint32_t>& host_of) {
  double farthest = 0;
  std::vector<uint32_t> path;
  for (const uint32_t host : host_of) {
    path.clear();
    network.paths.append_path(host_of.front(), host, collective::flow_between(host_of.front(), host), path);
    double latency = 0;
    for (const uint32_t channel : path) latency += network.topology.latency_seconds(channel);
    farthest = std::max(farthest, latency);
  }
  return 2 * farthest;
}

}  // namespace

absl::StatusOr<plan::Plan> plan_of_summers(const TensorOfJob& tensor, const Topology& topology,
                                           const std::vector<uint32_t>& host_of, uint32_t workers) {
  GLN_ASSIGN_OR_RETURN(auto tensors, tensors_of(tensor, std::nullopt));
  GLN_ASSIGN_OR_RETURN(plan::PartitionOptions options, options_of(tensor));
  GLN_ASSIGN_OR_RETURN(options.shares,
                       shares_in(topology, host_of, workers, static_cast<double>(tensors.front().bytes())));
  return plan::make_plan(netsim::fleet_of(topology, host_of, workers), std::move(tensors), options);
}

absl::StatusOr<netsim::Partitions> partitions_of_schedule(const TensorOfJob& tensor, const topology::Network& network,
                                                          const std::vector<uint32_t>& host_of,
                                                          const Schedule& schedule) {
  const std::optional<DataType> narrow = is_narrow(tensor.type) ? std::optional(tensor.type) : std::nullopt;
  GLN_ASSIGN_OR_RETURN(auto tensors, tensors_of(tensor, narrow));
  tensors.front().schedule = 0;
  GLN_ASSIGN_OR_RETURN(plan::PartitionOptions options, options_of(tensor));
  options.schedules = {strategy::cut_of(schedule)};
  GLN_ASSIGN_OR_RETURN(
      const plan::Plan plan,
      plan::make_plan(netsim::fleet_of(network.topology, host_of, schedule.ranks), std::move(tensors), options));
  netsim::Partitions partitions{.frame_bytes = wire::kHeaderBytes};
  for (const plan::Partition& partition : plan.partitions) partitions.bytes.push_back(partition.bytes);
  const double round_trip = round_trip_of(network, host_of);
  for (uint32_t worker = 0; worker < plan.workers; ++worker) {
    partitions.limits.push_back(
        {.in_flight_bytes = static_cast<double>(plan::schedule_window_bytes(plan, worker, 0, round_trip)),
         .window_bytes =
             static_cast<double>(plan::peer_window_bytes(plan, worker, wire::kHeaderBytes, 0, round_trip))});
  }
  return partitions;
}

}  // namespace gleaner::cli
