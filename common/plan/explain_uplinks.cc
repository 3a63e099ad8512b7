#include "common/plan/explain_uplinks.h"

#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/plan/all_reduce_bound.h"

namespace gleaner::plan {
namespace {

using topology::Topology;

std::string describe(const Topology& topology, uint32_t index) {
  const topology::Link& link = topology.links()[index];
  return absl::StrCat("the link between ", topology.name(link.a), " and ", topology.name(link.b), " at ",
                      format_bits_per_second(std::min(link.bits_per_second, link.back_bits_per_second)));
}

absl::Status explain_one_more(const Topology& topology, uint32_t workers, uint32_t summers, Explanation& explanation) {
  explanation.one_more.bits_per_second = 0;
  if (workers + summers == topology.host_count()) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(const Fleet larger, fleet_of(topology, workers, summers + 1));
  explanation.one_more.bits_per_second = larger.summer_bits_per_second.back();
  const auto bytes = static_cast<double>(explanation.stream_bytes);
  GLN_ASSIGN_OR_RETURN(const UplinkBound bound, bound_with_uplinks(topology, workers, summers + 1, bytes));
  explanation.one_more.bound_seconds = bound.seconds;
  return absl::OkStatus();
}

void explain_all_strategies(const Topology& topology, const Plan& plan, Explanation& explanation) {
  std::vector<uint32_t> hosts(plan.members.size());
  std::iota(hosts.begin(), hosts.end(), 0);
  const AllReduceBound bound =
      all_reduce_bound(topology, hosts, plan.workers, static_cast<double>(explanation.stream_bytes));
  explanation.all_strategies_seconds = bound.seconds;
  explanation.all_strategies_limits = describe_limits(bound, topology);
}

}  // namespace

absl::Status explain_uplinks(const Topology& topology, const LinkLoads& loads, const UplinkBound& bound,
                             const Plan& plan, Explanation& explanation) {
  const uint32_t workers = plan.workers;
  const auto summers = static_cast<uint32_t>(plan.members.size()) - workers;
  const std::vector<uint64_t> owned = owned_bytes(plan);
  const BusiestLink busiest = busiest_link(loads, std::vector<double>(owned.begin(), owned.end()));
  explanation.without_uplinks_seconds = explanation.bound_seconds;
  explanation.bound_seconds = explanation.all_reduce_seconds = bound.seconds;
  if (summers > 0) {
    const auto bytes = static_cast<double>(explanation.stream_bytes);
    GLN_ASSIGN_OR_RETURN(const UplinkBound alone, bound_with_uplinks(topology, workers, 0, bytes));
    explanation.all_reduce_seconds = alone.seconds;
  }
  explain_all_strategies(topology, plan, explanation);
  if (busiest.seconds > explanation.seconds * (1 + 1e-9)) {
    explanation.seconds = busiest.seconds;
    explanation.binding_link = describe(topology, busiest.link);
  }
  return explain_one_more(topology, workers, summers, explanation);
}

}  // namespace gleaner::plan
