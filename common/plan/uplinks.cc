#include "common/plan/uplinks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/routed_bound.h"

namespace gleaner::plan {
namespace {

using topology::Topology;

// Times with a smaller relative difference count as equal.
constexpr double kEqual = 1e-9;

absl::Status check_members(const Topology& topology, uint32_t workers, uint64_t members) {
  if (workers == 0) return absl::InvalidArgumentError("a job needs at least one worker");
  if (members <= topology.host_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the topology has ", topology.host_count(), " hosts, and the job ",
                                                 members, " members; each needs a host of its own"));
}

UplinkBound bound_of_tree(LinkTree tree, uint32_t members, double bytes, double push_ratio) {
  tree.set_push_ratio(push_ratio);
  const double least = tree.least_seconds_per_bit();
  UplinkBound bound{.seconds = least * bytes * 8};
  const std::vector<double> fraction = tree.distribute();
  const std::vector<double> own = tree.own(fraction);
  for (uint32_t member = 0; member < members; ++member) bound.shares.push_back(own[tree.branch_of(member)]);
  for (size_t i = 1; i < tree.branches().size(); ++i) {
    const Branch& branch = tree.branches()[i];
    if (branch.owns && tree.busy(branch, fraction[i]) >= least * (1 - 1e-9)) bound.limits.push_back(branch.link);
  }
  std::sort(bound.limits.begin(), bound.limits.end());
  return bound;
}

}  // namespace

absl::StatusOr<UplinkBound> bound_with_uplinks(const Topology& topology, uint32_t workers, uint32_t summers,
                                               double bytes, double push_ratio) {
  GLN_ASSIGN_OR_RETURN(const LinkLoads loads, link_loads(topology, workers, summers));
  return bound_with_uplinks(topology, loads, workers, summers, bytes, push_ratio);
}

absl::StatusOr<UplinkBound> bound_with_uplinks(const Topology& topology, const LinkLoads& loads, uint32_t workers,
                                               uint32_t summers, double bytes, double push_ratio) {
  if (workers == 1) {  // its own summer owns everything
    UplinkBound alone;
    alone.shares.assign(size_t{1} + summers, 0);
    alone.shares[0] = 1;
    return alone;
  }
  if (loads.tree() != nullptr) return bound_of_tree(*loads.tree(), workers + summers, bytes, push_ratio);
  GLN_ASSIGN_OR_RETURN(const Fleet fleet, fleet_of(topology, workers, summers));
  GLN_ASSIGN_OR_RETURN(RoutedBound bound, bound_on_routes(loads, fleet));
  return UplinkBound{bound.seconds_per_byte * bytes, std::move(bound.shares), std::move(bound.limits)};
}

absl::StatusOr<BusiestLink> busiest_link(const Topology& topology, uint32_t workers, const std::vector<uint64_t>& owned,
                                         double push_ratio) {
  GLN_ASSIGN_OR_RETURN(const LinkLoads loads,
                       link_loads(topology, workers, static_cast<uint32_t>(owned.size() - workers)));
  return busiest_link(loads, std::vector<double>(owned.begin(), owned.end()), push_ratio);
}

BusiestLink busiest_link(const LinkLoads& loads, const std::vector<double>& owned, double push_ratio) {
  const std::vector<LinkLoads::LinkLoad> of_links = loads.of(owned);
  BusiestLink busiest;
  for (size_t i = 0; i < of_links.size(); ++i) {
    const auto& [there, back] = of_links[i];
    const LinkLoads::Link& link = loads.links()[i];
    const double seconds = 8 * std::max((push_ratio * there.pushes + there.results) / link.there_bits_per_second,
                                        (push_ratio * back.pushes + back.results) / link.back_bits_per_second);
    if (seconds > busiest.seconds) busiest = {link.link, seconds};
  }
  return busiest;
}

absl::StatusOr<std::vector<double>> shares_with_uplinks(const Topology& topology, const LinkLoads& loads,
                                                        uint32_t workers, uint32_t summers, double push_ratio) {
  GLN_ASSIGN_OR_RETURN(Fleet fleet, fleet_of(topology, workers, summers));
  fleet.push_ratio = push_ratio;
  std::vector<double> of_fleet = shares(fleet);
  if (topology.switches().size() == 1 && loads.tree() != nullptr) return of_fleet;
  GLN_ASSIGN_OR_RETURN(UplinkBound bound, bound_with_uplinks(topology, loads, workers, summers, 1, push_ratio));
  const double before = busiest_link(loads, of_fleet, push_ratio).seconds;
  if (busiest_link(loads, bound.shares, push_ratio).seconds < before * (1 - kEqual)) return std::move(bound.shares);
  return of_fleet;
}

absl::StatusOr<LinkLoads> link_loads(const Topology& topology, uint32_t workers, uint32_t summers) {
  const uint64_t members = uint64_t{workers} + summers;
  GLN_RETURN_IF_ERROR(check_members(topology, workers, members));
  return LinkLoads::make(topology, workers, static_cast<uint32_t>(members));
}

absl::StatusOr<Fleet> fleet_of(const Topology& topology, uint32_t workers, uint32_t summers) {
  GLN_RETURN_IF_ERROR(check_members(topology, workers, uint64_t{workers} + summers));
  Fleet fleet;
  for (uint32_t host = 0; host < workers + summers; ++host) {
    double out = 0, in = 0;
    for (const Topology::Neighbour& next : topology.neighbours(host)) {
      out += topology.bits_per_second(next.channel);
      in += topology.bits_per_second(next.channel ^ 1);
    }
    (host < workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second).push_back(std::min(out, in));
  }
  return fleet;
}

}  // namespace gleaner::plan
