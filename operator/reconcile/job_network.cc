#include "operator/reconcile/job_network.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/fabric/group_tree.h"
#include "common/fabric/network.h"
#include "common/strategy/networked_strategy.h"
#include "common/topology/subset.h"
#include "coordinator/roster/networked_reduction.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

// The links of machines may turn out to be faster than they are taken to be when a job begins.
constexpr double kPlenty = 1000;

// Returns the workers, by the numbers of the map, and then the summers.
std::vector<fabric::Host> hosts_of(const Observation& observation, const Workers& workers, const api::RankMap& map,
                                   const std::vector<const PodView*>& summers) {
  std::vector<const PodView*> pods;
  std::vector<fabric::Host> hosts;
  for (uint32_t number = 0; number < workers.pods().size(); ++number) {
    const uint32_t index = map.index_of(number);
    pods.push_back(workers.pods()[index]);
    hosts.push_back({absl::StrCat(kWorker, "-", index), {}});
  }
  for (const PodView* summer : summers) {
    pods.push_back(summer);
    hosts.push_back({absl::StrCat(kSummer, "-", summer->index), {}});
  }
  const std::vector<std::string> nodes = nodes_of(pods);
  const std::vector<double> bits = assumed_bits_per_second(observation, pods);
  for (size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].node = nodes[i];
    hosts[i].bits_per_second = bits[i];
  }
  return hosts;
}

}  // namespace

absl::StatusOr<topology::Topology> network_of_workers(const Observation& observation, const Workers& workers,
                                                      const api::RankMap& map) {
  return fabric::network_of(*observation.fabric, hosts_of(observation, workers, map, {}));
}

absl::Status set_network(const Observation& observation, const Workers& workers,
                         const std::vector<const PodView*>& summers, const api::RankMap& map,
                         coordinator::Options& options) {
  std::vector<const PodView*> placed;
  std::ranges::copy_if(summers, std::back_inserter(placed), [](const PodView* pod) { return pod != nullptr; });
  const std::vector<fabric::Host> hosts = hosts_of(observation, workers, map, placed);
  GLN_ASSIGN_OR_RETURN(const topology::Topology all, fabric::network_of(*observation.fabric, hosts, kPlenty));
  if (all.switches().size() == 1) return absl::OkStatus();
  strategy::JobNetwork network;
  std::vector<uint32_t> hosts_of_workers(options.workers);
  std::iota(hosts_of_workers.begin(), hosts_of_workers.end(), 0);
  GLN_ASSIGN_OR_RETURN(network.topology, topology::subset(all, hosts_of_workers));
  network.summer_latency_seconds = fabric::latencies_at_switches(*observation.fabric, hosts);
  std::vector<uint32_t>& summers_at = network.summers_at.emplace();
  for (uint32_t i = 0; i < placed.size(); ++i) {
    if (placed[i]->index >= summers_at.size()) summers_at.resize(placed[i]->index + 1, 0);  // 0: fabric::kCore
    summers_at[placed[i]->index] = all.only_switch(options.workers + i)->node - all.host_count();
  }
  if (map.order == api::RankOrder::kIdentity) network.source = strategy::RankMapSource::kIdentity;
  GLN_ASSIGN_OR_RETURN(
      strategy::NetworkedStrategy fitted,
      strategy::fit_to_network(options.reduction.strategy, std::move(network), options.workers, options.summers));
  take(std::move(fitted), options.reduction);
  return absl::OkStatus();
}

std::vector<SummerGroups> groups_of_summers(const Observation& observation) {
  std::vector<SummerGroups> groups;
  for (const PodView* pod : summers_of_attempt(observation)) {
    if (!pod->node.empty()) groups.push_back({pod->index, fabric::group_names_of(*observation.fabric, pod->node)});
  }
  return groups;
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
