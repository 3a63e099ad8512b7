#include "common/strategy/networked_strategy.h"

#include <utility>
#include <variant>
#include <vector>

#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/strategy/probed_racks.h"
#include "common/strategy/rack_times.h"
#include "common/topology/probes.h"

namespace gleaner::strategy {
namespace {

bool has_groups(const collective::Spec* schedule) {
  return schedule != nullptr && collective::takes_groups(schedule->algorithm);
}

absl::Status find_tree(const Strategy& strategy, uint32_t workers, JobNetwork& network) {
  const collective::Spec* const schedule = schedule_of(strategy);
  network.of_probes = topology::is_of_probes(network.topology) && (has_groups(schedule) || is_auto(strategy));
  if (!network.of_probes) return absl::OkStatus();
  const uint32_t groups = has_groups(schedule) && !schedule->factors.empty() ? schedule->factors.front() : 0;
  GLN_ASSIGN_OR_RETURN(ProbedTree tree, tree_of_probes(network.topology, workers, groups));
  network.topology = std::move(tree.topology);
  network.unsure_groups = tree.unsure;
  return absl::OkStatus();
}

void set_groups(const JobNetwork& network, uint32_t workers, Strategy& strategy) {
  auto* const schedule = std::get_if<collective::Spec>(&strategy);
  if (!has_groups(schedule) || !schedule->factors.empty()) return;
  const collective::Groups racks = racks_of(network.topology, workers);
  schedule->factors = equal_stages(racks);
  if (!schedule->factors.empty()) return;
  for (const std::vector<uint32_t>& rack : racks) schedule->group_sizes.push_back(static_cast<uint32_t>(rack.size()));
}

}  // namespace

absl::StatusOr<NetworkedStrategy> fit_to_network(Strategy strategy, JobNetwork network, uint32_t workers,
                                                 uint32_t summers) {
  GLN_RETURN_IF_ERROR(validate(network, workers, summers));
  GLN_RETURN_IF_ERROR(find_tree(strategy, workers, network));
  set_groups(network, workers, strategy);
  return NetworkedStrategy{std::move(strategy), std::move(network)};
}

absl::StatusOr<NetworkedStrategy> find_rank_maps(Strategy strategy, JobNetwork network, uint32_t workers) {
  std::vector<collective::Spec> schedules;
  auto* const schedule = std::get_if<collective::Spec>(&strategy);
  if (schedule != nullptr) {
    schedules = {*schedule};
  } else if (is_auto(strategy)) {
    GLN_ASSIGN_OR_RETURN(schedules, schedules_for(network, workers));
  }
  GLN_ASSIGN_OR_RETURN(network.mapped, map_ranks(network, workers, schedules));
  if (schedule != nullptr && !network.mapped.empty()) *schedule = network.mapped.front().spec;
  return NetworkedStrategy{std::move(strategy), std::move(network)};
}

}  // namespace gleaner::strategy
