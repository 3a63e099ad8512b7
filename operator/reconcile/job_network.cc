#include "operator/reconcile/job_network.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/fabric/network.h"
#include "common/strategy/networked_strategy.h"
#include "coordinator/roster/networked_reduction.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {

absl::StatusOr<topology::Topology> network_of_workers(const Observation& observation, const Workers& workers,
                                                      const api::RankMap& map) {
  const std::vector<const PodView*>& pods = workers.pods();
  const std::vector<double> bits = assumed_bits_per_second(observation, pods);
  std::vector<fabric::Host> hosts;
  for (uint32_t number = 0; number < pods.size(); ++number) {
    const uint32_t index = map.index_of(number);
    hosts.push_back({absl::StrCat(kWorker, "-", index), pods[index] == nullptr ? "" : pods[index]->node, bits[index]});
  }
  return fabric::network_of(*observation.fabric, hosts);
}

absl::Status set_network(const Observation& observation, const Workers& workers, const api::RankMap& map,
                         coordinator::Options& options) {
  if (map.groups.empty()) return absl::OkStatus();
  if (std::holds_alternative<strategy::Summers>(options.reduction.strategy)) return absl::OkStatus();
  strategy::JobNetwork network;
  GLN_ASSIGN_OR_RETURN(network.topology, network_of_workers(observation, workers, map));
  network.summers_at = 0;  // fabric::kCore
  if (map.order == api::RankOrder::kIdentity) network.source = strategy::RankMapSource::kIdentity;
  GLN_ASSIGN_OR_RETURN(
      strategy::NetworkedStrategy fitted,
      strategy::fit_to_network(options.reduction.strategy, std::move(network), options.workers, options.summers));
  take(std::move(fitted), options.reduction);
  return absl::OkStatus();
}

absl::Status map_schedules(coordinator::Options& options) {
  coordinator::Options::Reduction& reduction = options.reduction;
  if (reduction.network == nullptr) return absl::OkStatus();
  if (is_auto(reduction.strategy) && coordinator::bits_of(reduction) == plan::Bits::kRankOrder) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(strategy::NetworkedStrategy found,
                       strategy::find_rank_maps(reduction.strategy, *reduction.network, options.workers));
  take(std::move(found), reduction);
  return absl::OkStatus();
}

}  // namespace gleaner::reconcile
