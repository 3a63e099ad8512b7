#include "cli/cluster/explain_uplink.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/explain_step.h"
#include "common/base/status_macros.h"
#include "common/fabric/network.h"
#include "common/fabric/step_bound.h"
#include "common/plan/uplinks.h"

namespace gleaner::cli {
namespace {

FoundUplink binding_uplink(const ExplainedJob& job, const fabric::Fabric& fabric) {
  std::vector<fabric::Host> hosts;
  std::vector<uint64_t> owned;
  uint32_t workers = 0;
  for (const char* const role : {"worker", "summer"}) {
    for (const ExplainedMachine& machine : job.machines) {
      if (machine.member.role != role) continue;
      hosts.push_back({machine.member.name, machine.member.node, machine.member.bits_per_second});
      owned.push_back(machine.member.owned_bytes);
    }
    if (workers == 0) workers = static_cast<uint32_t>(hosts.size());
  }
  GLN_ASSIGN_OR_RETURN(const topology::Topology network, fabric::network_of(fabric, hosts));
  GLN_ASSIGN_OR_RETURN(const plan::BusiestLink busiest,
                       plan::busiest_link(network, workers, owned, push_ratio_of(job.plan.spec)));
  const topology::Link& link = network.links()[busiest.link];
  const bool is_uplink = !network.is_host(link.a) && !network.is_host(link.b);
  const double without = job.machines[job.binding].seconds;
  if (!is_uplink || busiest.seconds <= without * (1 + kSame)) return std::nullopt;
  return BindingUplink{network.name(link.a), link.bits_per_second, busiest.seconds * link.bits_per_second / 8,
                       busiest.seconds, without};
}

// Finds the group where one more summer makes the bound shortest.
void place_one_more(const fabric::Fabric& fabric, ExplainedJob& job) {
  std::vector<std::string> nodes;
  fabric::StepBound bound(fabric, push_ratio_of(job.plan.spec));
  for (const auto& [member, share, seconds] : job.machines) {
    if (!takes_part(member)) continue;
    nodes.push_back(member.node);
    if (member.role == "worker") {
      bound.add_worker(member.node, member.bits_per_second);
    } else {
      bound.add_summer(member.node, member.bits_per_second);
    }
  }
  if (!fabric::has_known_uplinks(fabric, nodes)) return;
  const char* const nowhere = "";
  const double present = bound.seconds_per_byte();
  double best = bound.with_summer(nowhere, job.one_more_bits_per_second);
  for (const api::TopologyGroup& group : fabric.groups()) {
    if (group.nodes.empty()) continue;
    const double most = best * (1 - kSame);
    const double seconds = bound.with_summer(group.nodes.front(), job.one_more_bits_per_second, most);
    if (seconds > most) continue;
    best = seconds;
    job.one_more_group = group.name;
  }
  // The plan's bound may count uplinks of before, which would be no gain of the summer.
  const bool helps = best < present * (1 - kSame);
  if (!helps) job.one_more_group.clear();
  job.one_more_bound_seconds =
      helps ? best * static_cast<double>(job.plan.spec.bytes_per_step) : job.plan.spec.bound_seconds;
}

}  // namespace

void count_uplinks(const absl::StatusOr<fabric::Fabric>& fabric, ExplainedJob& job) {
  if (job.limit != JobLimit::kUplink && !has_binding(job)) return;
  if (!fabric.ok()) {
    job.uplink = fabric.status();
    return;
  }
  job.uplink = binding_uplink(job, *fabric);
  place_one_more(*fabric, job);
  if (!job.uplink.ok() || !job.uplink->has_value()) return;
  job.limit = JobLimit::kUplink;
  job.seconds = std::max((*job.uplink)->seconds, job.plan.spec.bound_seconds);
}

}  // namespace gleaner::cli
