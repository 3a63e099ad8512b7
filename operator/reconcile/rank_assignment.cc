#include "operator/reconcile/rank_assignment.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/fabric/group_tree.h"
#include "common/strategy/rank_maps.h"
#include "operator/reconcile/job_network.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/rank_environment.h"

namespace gleaner::reconcile {
namespace {

constexpr char kRanksOutdated[] = "RanksOutdated";

api::RankMap identity(const api::TrainingJob& job, std::string why) {
  return {.attempt = job.status.attempt, .order = api::RankOrder::kIdentity, .message = std::move(why)};
}

std::string name_of(const fabric::Fabric& fabric, const fabric::HostGroup& group) {
  return group.group.has_value() ? fabric.groups()[*group.group].name : "";
}

// Takes the workers of each group, in the order of the groups, for numbers 0, 1, ...
void number_by_group(const std::vector<fabric::HostGroup>& groups, api::RankMap& map) {
  for (const fabric::HostGroup& group : groups) {
    std::vector<uint32_t>& numbers = map.groups[&group - groups.data()].workers;
    for (const uint32_t index : group.hosts) {
      numbers.push_back(static_cast<uint32_t>(map.workers.size()));
      map.workers.push_back(index);
    }
  }
  if (std::ranges::is_sorted(map.workers)) map.workers.clear();
}

// Models a ring with this map. A map whose ring would take longer than that of the identity does not come out of groups
// of a tree, but nothing depends on it.
void model_ring(const Observation& observation, const Workers& workers, api::RankMap& map) {
  const auto network = network_of_workers(observation, workers, identity(observation.job, ""));
  if (!network.ok()) {
    absl::StrAppend(&map.message, "; the network can't be modelled: ", network.status().message());
    return;
  }
  std::vector<uint32_t> host_of;
  for (uint32_t number = 0; number < workers.pods().size(); ++number) host_of.push_back(map.index_of(number));
  const auto times = strategy::ring_times(*network, host_of);
  if (!times.has_value()) return;
  map.ring = {times->identity_seconds, times->seconds};
  if (map.workers.empty()) return;
  absl::StrAppend(&map.message, ", so that a ring takes ", format_seconds(times->seconds), " instead of ",
                  format_seconds(times->identity_seconds), " for a partition, by the model");
}

api::RankMap make_map(const Observation& observation, const Workers& workers) {
  const api::TrainingJob& job = observation.job;
  // Its members have their ranks: an operator that assigned none by the topology has begun it.
  if (is_settled(observation) || job.status.epoch > 0) return identity(job, "the attempt had begun before");
  const std::vector<std::string> nodes = nodes_of(workers.pods());
  const std::vector<fabric::HostGroup> groups = near_first(tree_of(*observation.fabric, nodes));
  if (groups.size() < 2) {
    const std::string name = name_of(*observation.fabric, groups.front());
    return identity(job,
                    absl::StrCat("no label tells the workers' machines apart, so they are taken to be on one switch",
                                 name.empty() ? "" : absl::StrCat(", that of ", name)));
  }
  api::RankMap map{.attempt = job.status.attempt, .order = job.communication.rank_map};
  for (const fabric::HostGroup& group : groups) {
    map.groups.push_back({name_of(*observation.fabric, group), {}, group.uplink_bits_per_second});
  }
  if (map.order == api::RankOrder::kIdentity) {
    for (size_t i = 0; i < groups.size(); ++i) map.groups[i].workers = groups[i].hosts;
    map.message = "spec.communication.rankMap is Identity";
  } else {
    number_by_group(groups, map);
    map.message = absl::StrCat("ranks follow the ", counted(groups.size(), "group"), " of the workers' machines");
    if (map.workers.empty()) absl::StrAppend(&map.message, ", as the workers' indexes do already");
  }
  model_ring(observation, workers, map);
  return map;
}

// The indexes of the workers in each group. Names of groups do not count, since those of near nodes change with them.
using IndexesOfGroups = std::set<std::set<uint32_t>>;

IndexesOfGroups groups_now(const fabric::Fabric& fabric, const Workers& workers) {
  IndexesOfGroups groups;
  const std::vector<fabric::HostGroup> found = near_first(tree_of(fabric, nodes_of(workers.pods())));
  if (found.size() < 2) return groups;
  for (const fabric::HostGroup& group : found) groups.insert({group.hosts.begin(), group.hosts.end()});
  return groups;
}

IndexesOfGroups groups_of(const api::RankMap& map) {
  IndexesOfGroups groups;
  const bool by_number = map.order == api::RankOrder::kTopology;
  for (const api::RankMapGroup& group : map.groups) {
    std::set<uint32_t> indexes;
    for (const uint32_t worker : group.workers) indexes.insert(by_number ? map.index_of(worker) : worker);
    groups.insert(std::move(indexes));
  }
  return groups;
}

}  // namespace

const api::RankMap* rank_map_of(const api::TrainingJob& job) {
  const std::optional<api::RankMap>& map = job.status.communication.rank_map;
  if (!map.has_value() || map->attempt != job.status.attempt || job.workers.replicas == 1) return nullptr;
  return map->workers.empty() || map->workers.size() == job.workers.replicas ? &*map : nullptr;
}

void report_moved_machines(const Observation& observation, const Workers& workers, StatusUpdate& update) {
  const api::RankMap* const map = rank_map_of(observation.job);
  const bool all_known = std::ranges::none_of(workers.pods(), [](const PodView* pod) { return pod == nullptr; });
  if (map == nullptr || !all_known || observation.job.communication.rank_map == api::RankOrder::kIdentity) return;
  const bool moved = groups_now(*observation.fabric, workers) != groups_of(*map);
  if (moved == update.holds(kRanksOutdated)) return;
  if (!moved) return update.set_condition(kRanksOutdated, false, "GroupsAsAssigned", "");
  const std::string message =
      "labels or latencies put the workers' machines into other groups than when their ranks were assigned: the ranks "
      "stay until the job starts again";
  update.set_condition(kRanksOutdated, true, "GroupsChanged", message);
  update.add_event(true, kRanksOutdated, message);
}

RankDecision assign_ranks(const Observation& observation, const Workers& workers, StatusUpdate update) {
  const api::TrainingJob& job = observation.job;
  RankDecision decision{std::move(update), false, std::nullopt, {}};
  if (job.workers.replicas == 1) return decision;
  const api::RankMap* map = rank_map_of(job);
  if (map == nullptr) {
    decision.is_new = true;
    map = &decision.update.status.communication.rank_map.emplace(make_map(observation, workers));
    if (!map->groups.empty()) decision.update.add_event(false, "RanksAssigned", map->message);
  }
  if (job.communication.rank_map == api::RankOrder::kIdentity) return decision;
  for (uint32_t number = 0; number < workers.pods().size(); ++number) {
    const PodView* pod = workers.pods()[map->index_of(number)];
    if (pod == nullptr || !pod->alive()) continue;
    const uint32_t rank = number * job.workers.local_ranks;
    if (pod->rank != rank) decision.labels.push_back({pod->name, rank});
    if (pod->rank == rank && !waits_for_rank(job, *pod)) continue;
    if (!decision.object.has_value()) decision.object = rank_map_object(job, *map);
  }
  return decision;
}

}  // namespace gleaner::reconcile
