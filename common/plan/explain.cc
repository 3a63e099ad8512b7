#include "common/plan/explain.h"

#include <algorithm>

#include "common/base/median.h"
#include "common/plan/model.h"

namespace gleaner::plan {
namespace {

void explain_partitions(const Plan& plan, const Fleet& fleet, Explanation& result) {
  result.tensors = plan.tensors.size();
  result.partitions = plan.partitions.size();
  if (!plan.partitions.empty()) {
    const auto [smallest, largest] = std::ranges::minmax(plan.partitions, {}, &Partition::bytes);
    result.partition_sizes.smallest = smallest.bytes;
    result.partition_sizes.largest = largest.bytes;
  }
  result.partition_sizes.by_default = default_partition_bytes(fleet, result.stream_bytes);
  result.partition_sizes.limits = partition_limits(fleet, result.stream_bytes);
  result.window_bytes = window_bytes(plan, result.slowest_worker);
}

Limit limit_of(const Fleet& fleet, double bound_seconds, double stream_bytes) {
  if (bound_seconds == 0) return Limit::kNothingMoves;
  const double least = slowest_worker_seconds(fleet, stream_bytes);
  return bound_seconds > least * (1 + 1e-9) ? Limit::kAllLinks : Limit::kSlowestWorker;
}

}  // namespace

Explanation explain(const Plan& plan) {
  Explanation result;
  const Fleet fleet = fleet_of(plan);
  const std::vector<uint64_t> owned = owned_bytes(plan);
  const std::vector<double> traffic = traffic_bytes(fleet, owned);
  for (uint64_t bytes : owned) result.stream_bytes += bytes;
  const auto stream = static_cast<double>(result.stream_bytes);

  result.workers = plan.workers;
  result.push_ratio = fleet.push_ratio;
  result.machines.reserve(plan.members.size());
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    const double bandwidth = plan.members[member].bits_per_second;
    result.machines.push_back({.name = plan.member_name(member),
                               .bits_per_second = bandwidth,
                               .owned_bytes = owned[member],
                               .share = stream > 0 ? static_cast<double>(owned[member]) / stream : 0,
                               .traffic_bytes = traffic[member],
                               .seconds = traffic[member] * 8 / bandwidth});
  }
  const auto& workers = fleet.worker_bits_per_second;
  result.slowest_worker = static_cast<uint32_t>(std::ranges::min_element(workers) - workers.begin());
  const auto binding = std::ranges::max_element(result.machines, {}, &MachineLoad::seconds);
  result.binding = static_cast<uint32_t>(binding - result.machines.begin());
  result.seconds = binding->seconds;
  result.bound_seconds = bound_seconds(fleet, stream);
  Fleet workers_only = fleet;
  workers_only.summer_bits_per_second.clear();
  result.all_reduce_seconds = bound_seconds(workers_only, stream);
  result.limit = limit_of(fleet, result.bound_seconds, stream);

  result.one_more.bits_per_second = upper_median(fleet.k() > 0 ? fleet.summer_bits_per_second : workers);
  Fleet larger = fleet;
  larger.summer_bits_per_second.push_back(result.one_more.bits_per_second);
  result.one_more.bound_seconds = bound_seconds(larger, stream);

  explain_partitions(plan, fleet, result);
  return result;
}

void explain_copies(const Plan& plan, double bytes_per_second, Explanation& explanation) {
  explanation.copies = copy_stage(bytes_per_second, explanation.stream_bytes, plan.local_ranks, explanation.seconds);
}

}  // namespace gleaner::plan
