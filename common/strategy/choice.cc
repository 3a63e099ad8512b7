#include "common/strategy/choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/candidates.h"
#include "common/topology/network.h"
#include "common/topology/subset.h"

namespace gleaner::strategy {
namespace {

struct Share {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

std::string name_with_effect(const Candidate& candidate) {
  if (!candidate.mapped.has_value()) return name_of(candidate);
  return absl::StrCat(name_of(candidate), " (rank map: ", describe(*candidate.schedule, *candidate.mapped), ")");
}

std::string describe(const std::map<std::string, Share>& shares) {
  return absl::StrCat("strategies: ", absl::StrJoin(shares, "; ", [](std::string* out, const auto& share) {
                        absl::StrAppend(out, counted(share.second.tensors, "tensor"), " of ",
                                        format_bytes(static_cast<double>(share.second.bytes)), " by ", share.first);
                      }));
}

absl::StatusOr<topology::Topology> one_switch(const plan::Plan& plan, double round_trip_seconds,
                                              double overhead_seconds) {
  std::vector<topology::Host> hosts;
  std::vector<topology::Link> links;
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    if (owns_partitions(plan, member)) hosts.push_back({plan.member_name(member), {}, overhead_seconds});
  }
  const auto center = static_cast<uint32_t>(hosts.size());
  for (uint32_t member = 0, host = 0; member < plan.members.size(); ++member) {
    if (!owns_partitions(plan, member)) continue;
    const double bandwidth = plan.members[member].bits_per_second;
    links.push_back({host++, center, bandwidth, bandwidth, round_trip_seconds / 4});  // a round trip has four links
  }
  return topology::Topology::make(std::move(hosts), {{"switch"}}, std::move(links));
}

// Returns the topology with a host for each further member, whose link leads to the summer's switch.
absl::StatusOr<topology::Topology> with_summers(const JobNetwork& known, const plan::Plan& plan,
                                                std::span<const uint32_t> summers_at) {
  const topology::Topology& workers = known.topology;
  std::vector<topology::Host> hosts = workers.hosts();
  std::vector<topology::Link> links = workers.links();
  const auto added = static_cast<uint32_t>(plan.members.size()) - plan.workers;
  for (topology::Link& link : links) {
    for (uint32_t* const end : {&link.a, &link.b}) *end += workers.is_host(*end) ? 0 : added;
  }
  const uint32_t first_switch = plan.workers + added;
  const std::vector<double>& latencies = known.summer_latency_seconds;
  for (uint32_t member = plan.workers; member < plan.members.size(); ++member) {
    // An empty place has no bandwidth, and takes no part.
    const double bits = std::max(plan.members[member].bits_per_second, plan::kMinBitsPerSecond);
    const uint32_t place = member - plan.workers;
    const uint32_t at = place < summers_at.size() ? summers_at[place] : switch_of(known, place);
    hosts.push_back({plan.member_name(member), {}});
    const double latency = at < latencies.size() ? latencies[at] : links.front().latency_seconds;
    links.push_back({member, first_switch + at, bits, bits, latency});
  }
  return topology::Topology::make(std::move(hosts), workers.switches(), std::move(links));
}

// Returns the topology of the members that own partitions, with links of hosts that fit their members and the round
// trip.
absl::StatusOr<topology::Topology> part_of(const JobNetwork& network, std::span<const uint32_t> summers_at,
                                           const plan::Plan& plan, double round_trip_seconds, double overhead_seconds) {
  topology::Topology known = network.topology;
  if (network.summers_at.has_value() && plan.members.size() > plan.workers) {
    GLN_ASSIGN_OR_RETURN(known, with_summers(network, plan, summers_at));
  }
  std::vector<uint32_t> members;
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    if (owns_partitions(plan, member) && member < known.host_count()) members.push_back(member);
  }
  GLN_ASSIGN_OR_RETURN(topology::Topology hosts, topology::subset(known, members));
  const topology::Network of_members = topology::make_network(std::move(hosts));
  const topology::Topology& part = of_members.topology;
  const double longest = 2 * farthest_latency(of_members, plan.workers, part.host_count());
  const double software = std::max(0.0, round_trip_seconds - longest) / 4;
  std::vector<topology::Link> links = part.links();
  for (topology::Link& link : links) {
    for (const uint32_t end : {link.a, link.b}) {
      if (!part.is_host(end)) continue;
      link.latency_seconds += software;
      const plan::Member& member = plan.members[members[end]];
      if (member.bandwidth_assumed) continue;
      double& bits = link.bits_per_second;
      double& back = link.back_bits_per_second;
      // With summers_at the links of hosts are as fast as members were taken to be when the job began.
      bits = network.summers_at.has_value() ? member.bits_per_second : std::min(bits, member.bits_per_second);
      back = network.summers_at.has_value() ? member.bits_per_second : std::min(back, member.bits_per_second);
    }
  }
  std::vector<topology::Host> named = part.hosts();
  for (topology::Host& host : named) {
    if (host.overhead_seconds == 0) host.overhead_seconds = overhead_seconds;
  }
  return topology::Topology::make(std::move(named), part.switches(), std::move(links));
}

}  // namespace

absl::StatusOr<topology::Network> network_of(const plan::Plan& plan, double round_trip_seconds, double overhead_seconds,
                                             const JobNetwork* known, std::span<const uint32_t> summers_at) {
  GLN_ASSIGN_OR_RETURN(topology::Topology made,
                       known == nullptr ? one_switch(plan, round_trip_seconds, overhead_seconds)
                                        : part_of(*known, summers_at, plan, round_trip_seconds, overhead_seconds));
  return topology::make_network(std::move(made));
}

absl::StatusOr<topology::Topology> topology_of(const plan::Plan& plan, const JobNetwork& known,
                                               std::span<const uint32_t> summers_at) {
  return part_of(known, summers_at, plan, 0, 0);
}

uint32_t switch_of(const JobNetwork& network, uint32_t summer) {
  return summer < network.summers_at->size() ? (*network.summers_at)[summer] : 0;
}

bool owns_partitions(const plan::Plan& plan, uint32_t member) {
  return plan.members[member].is_here() && !plan.members[member].on_standby;
}

std::optional<uint32_t> index_of(const std::optional<collective::Spec>& schedule, plan::Plan& plan) {
  if (!schedule.has_value()) return std::nullopt;
  const auto found = std::ranges::find(plan.schedules, *schedule);
  const auto index = static_cast<uint32_t>(found - plan.schedules.begin());
  if (found != plan.schedules.end()) return index;
  if (plan.schedules.size() == plan::kMaxSchedules) return std::nullopt;
  plan.schedules.push_back(*schedule);
  return index;
}

std::string choose(plan::Plan& plan, std::vector<plan::Tensor>& tensors, std::span<const Candidate> candidates,
                   const plan::Fleet& fleet) {
  if (tensors.empty()) return "";
  std::map<std::string, Share> shares;
  for (plan::Tensor& tensor : tensors) {
    const uint64_t by_default = plan::default_partition_bytes(fleet, tensor.bytes());
    const Candidate& chosen =
        candidates[best(seconds_of_new(candidates, {tensor.bytes(), plan.encoding(tensor), by_default}))];
    tensor.schedule = tensor.may_have_schedule() ? index_of(chosen.schedule, plan) : std::nullopt;
    Share& share = shares[tensor.schedule.has_value() ? name_with_effect(chosen) : plan::kSummersStrategy];
    ++share.tensors;
    share.bytes += tensor.bytes();
  }
  return describe(shares);
}

}  // namespace gleaner::strategy
