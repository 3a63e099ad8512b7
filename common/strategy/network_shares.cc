#include "common/strategy/network_shares.h"

#include "absl/status/statusor.h"
#include "common/plan/uplinks.h"
#include "common/strategy/choice.h"

namespace gleaner::strategy {

std::vector<double> network_shares(const plan::Plan& plan, double push_ratio, const JobNetwork& network,
                                   std::span<const uint32_t> summers_at) {
  const absl::StatusOr<topology::Topology> made = topology_of(plan, network, summers_at);
  if (!made.ok() || made->switches().size() == 1) return {};
  const uint32_t summers = made->host_count() - plan.workers;
  const absl::StatusOr<plan::LinkLoads> loads = plan::link_loads(*made, plan.workers, summers);
  if (!loads.ok() || loads->tree() == nullptr) return {};
  const auto shares = plan::shares_with_uplinks(*made, *loads, plan.workers, summers, push_ratio);
  if (!shares.ok()) return {};
  std::vector<double> by_member(plan.members.size(), 0);
  for (uint32_t member = 0, host = 0; member < by_member.size() && host < shares->size(); ++member) {
    if (owns_partitions(plan, member)) by_member[member] = (*shares)[host++];
  }
  return by_member;
}

}  // namespace gleaner::strategy
