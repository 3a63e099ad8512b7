#include "operator/reconcile/plan_object.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/mix.h"
#include "common/plan/model.h"
#include "common/plan/schedule_name.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/rank_assignment.h"

namespace gleaner::reconcile {
namespace {

// Plans with more members leave out transports, the ranks of members, and the groups of the rank map, since an object
// must stay below etcd's limit of 1.5 MiB.
constexpr size_t kMostDetailed = 2048;

// Plans with more entries in the rank maps of all schedules leave out these, for the same reason.
constexpr size_t kMostRanks = 32768;

constexpr char kSummerPrefix[] = "summer-";

api::PlanMember describe(const Observation& observation, const char* role, const SummerSeat& seat,
                         double bits_per_second) {
  api::PlanMember member;
  member.name = absl::StrCat(role, "-", seat.index);
  member.role = role;
  member.pod = pod_name(observation.job.meta.name, role, seat.index, observation.job.status.attempt);
  if (seat.pod != nullptr) member.node = seat.pod->node;
  member.bits_per_second = bits_per_second;
  return member;
}

// Returns "tcp" for tcp://10.0.0.1:7000. For shm://HOST/PATH returns "shm:" and a hash of HOST, which is short because
// an object may have thousands of transports.
std::string transport_of(const std::string& endpoint) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(endpoint, absl::MaxSplits("://", 1));
  if (parts.first != "shm") return std::string(parts.first.substr(0, 32));
  const auto hash = fnv1a<uint32_t>(parts.second.substr(0, parts.second.find('/')));
  return absl::StrCat("shm:", absl::Hex(hash, absl::kZeroPad8));
}

void take_states(const coordinator::JobState& session, std::vector<api::PlanMember>& members) {
  absl::flat_hash_map<std::string, const coordinator::MemberState*> states;
  for (const coordinator::MemberState& state : session.members) states[state.name] = &state;
  for (api::PlanMember& member : members) {
    const auto found = states.find(member.name);
    if (found == states.end()) continue;
    const coordinator::MemberState& state = *found->second;
    member.address = state.address;
    if (members.size() <= kMostDetailed) {
      for (const std::string& endpoint : state.endpoints) member.transports.push_back(transport_of(endpoint));
    }
    member.owned_bytes = state.owned_bytes;
    member.acknowledged_epoch = state.acknowledged_epoch;
    member.slow = state.slow;
    if (state.bits_per_second > 0) member.bits_per_second = state.bits_per_second;
    member.bandwidth_assumed = state.bandwidth_assumed;
  }
}

// Sets each member's traffic by the bandwidth model, and marks the member whose link takes longest.
void take_traffic(uint32_t workers, double push_ratio, std::vector<api::PlanMember>& members) {
  plan::Fleet fleet{.push_ratio = push_ratio};
  std::vector<uint64_t> owned;
  for (size_t i = 0; i < members.size(); ++i) {
    (i < workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second).push_back(members[i].bits_per_second);
    owned.push_back(members[i].owned_bytes);
  }
  const std::vector<double> traffic = plan::traffic_bytes(fleet, owned);
  size_t slowest = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].traffic_bytes = static_cast<uint64_t>(traffic[i]);
    if (traffic[i] / members[i].bits_per_second > traffic[slowest] / members[slowest].bits_per_second) slowest = i;
  }
  members[slowest].binds = members[slowest].traffic_bytes > 0;
}

void take_strategies(const coordinator::JobState& session, api::ReductionPlanSpec& spec) {
  if (!session.strategies.empty()) spec.strategy = session.summary.strategy;
  if (session.epoch > 0) spec.bits = plan::name_of(session.summary.bits.in_force);
  if (const std::optional<coordinator::OtherBits>& other = session.summary.bits.other) {
    spec.other_bits = {plan::name_of(other->bits), other->strategy, other->seconds, other->instead_of_seconds};
  }
  for (const plan::StrategyShare& share : session.strategies) {
    spec.strategies.push_back({share.strategy, share.tensors, share.bytes});
  }
  size_t ranks = 0;
  for (const collective::Spec& schedule : session.schedules) {
    spec.schedules.push_back({schedule.algorithm, schedule.factors, schedule.radix, schedule.rank_of});
    ranks += schedule.rank_of.size();
  }
  if (ranks <= kMostRanks) return;
  for (api::PlanSchedule& schedule : spec.schedules) schedule.ranks.clear();
}

void take_summary(const coordinator::JobState& session, api::ReductionPlan& plan) {
  const coordinator::Summary& summary = session.summary;
  plan.spec.epoch = session.epoch;
  plan.spec.tensors = summary.tensors;
  plan.spec.partitions = summary.partitions;
  const coordinator::Figures& window = summary.window;
  plan.spec.bytes_per_step = static_cast<uint64_t>(summary.recent().bytes_per_step);
  plan.spec.dense_bytes_per_step = static_cast<uint64_t>(summary.recent().dense_bytes_per_step);
  plan.spec.push_bytes_per_step =
      static_cast<uint64_t>(std::llround(static_cast<double>(plan.spec.bytes_per_step) * summary.push_ratio));
  plan.spec.bound_seconds = summary.plan_bound.seconds;
  plan.spec.bound_without_summers_seconds = summary.plan_bound.seconds_without_summers;
  plan.status.committed_epoch = session.epoch;
  plan.status.steps = summary.whole.steps;
  plan.status.step_communication_seconds = window.step_communication_seconds;
  plan.status.goodput_bytes_per_second = window.goodput_bytes_per_second;
  plan.status.efficiency = window.efficiency;
  plan.status.efficiency_basis = std::string(coordinator::to_string(window.basis));
  plan.status.packs = summary.packs.has_value() ? coordinator::describe(*summary.packs) : "";
}

// Gives workers without a pod, which have succeeded, the node that the plan object has for them.
void keep_nodes(const api::ReductionPlan& before, std::vector<api::PlanMember>& members) {
  for (size_t i = 0; i < std::min(members.size(), before.spec.members.size()); ++i) {
    const api::PlanMember& known = before.spec.members[i];
    if (members[i].node.empty() && known.role == kWorker && known.name == members[i].name) members[i].node = known.node;
  }
}

// Adds the workers in the order of ranks. `workers`: by index.
void add_workers(const Observation& observation, const std::vector<const PodView*>& workers,
                 api::ReductionPlanSpec& spec) {
  const api::TrainingJob& job = observation.job;
  const std::vector<double> bits = assumed_bits_per_second(observation, workers);
  const api::RankMap* const map = rank_map_of(job);
  for (uint32_t number = 0; number < workers.size(); ++number) {
    const uint32_t index = map == nullptr ? number : map->index_of(number);
    spec.members.push_back(describe(observation, kWorker, {index, workers[index], true}, bits[index]));
    if (workers.size() <= kMostDetailed) spec.members.back().rank = number * job.workers.local_ranks;
  }
  if (map == nullptr) return;
  spec.rank_map = *map;
  spec.rank_map->workers.clear();
  if (workers.size() > kMostDetailed) spec.rank_map->groups.clear();
}

const PodView* find_summer(const Observation& observation, uint32_t index) {
  for (const auto& pod : observation.pods) {
    if (pod->role == kSummer && pod->index == index && pod->attempt == observation.job.status.attempt) return pod.get();
  }
  return nullptr;
}

}  // namespace

bool is_settled(const Observation& observation) {
  return observation.plan.has_value() && observation.plan->spec.attempt == observation.job.status.attempt &&
         !observation.plan->spec.members.empty();
}

double planned_push_ratio(const Observation& observation) {
  if (!observation.plan.has_value()) return 1;
  const api::ReductionPlanSpec& spec = observation.plan->spec;
  if (spec.bytes_per_step == 0 || spec.push_bytes_per_step == 0) return 1;
  const double ratio = static_cast<double>(spec.push_bytes_per_step) / static_cast<double>(spec.bytes_per_step);
  return std::clamp(ratio, 1 / plan::kMaxPushRatio, plan::kMaxPushRatio);
}

std::vector<SummerSeat> seats_of(const std::vector<const PodView*>& summers) {
  std::vector<SummerSeat> seats;
  seats.reserve(summers.size());
  for (const PodView* pod : summers) seats.push_back({pod->index, pod, true});
  return seats;
}

std::vector<SummerSeat> planned_summers(const Observation& observation) {
  std::vector<SummerSeat> summers;
  if (!observation.plan.has_value()) return summers;
  for (const api::PlanMember& member : observation.plan->spec.members) {
    SummerSeat summer;
    const absl::string_view name = member.name;
    if (member.role != kSummer || !absl::StartsWith(name, kSummerPrefix)) continue;
    if (!absl::SimpleAtoi(name.substr(sizeof kSummerPrefix - 1), &summer.index)) continue;
    summer.pod = find_summer(observation, summer.index);
    summer.had_pod = !member.node.empty();
    summers.push_back(summer);
  }
  return summers;
}

std::vector<SummerSeat> session_summers(const Observation& observation) {
  std::vector<SummerSeat> summers;
  for (const coordinator::MemberState& member : observation.session->members) {
    if (member.role != coordinator::Role::kSummer) continue;
    const PodView* pod = find_summer(observation, member.index);
    summers.push_back({member.index, pod, pod != nullptr});
  }
  return summers;
}

std::vector<const PodView*> pods_of(const std::vector<SummerSeat>& summers) {
  std::vector<const PodView*> pods;
  pods.reserve(summers.size());
  for (const SummerSeat& summer : summers) pods.push_back(summer.pod);
  return pods;
}

api::ReductionPlan make_plan_object(const Observation& observation, const std::vector<const PodView*>& workers,
                                    const std::vector<SummerSeat>& summers) {
  const api::TrainingJob& job = observation.job;
  api::ReductionPlan plan;
  plan.meta.name = job.meta.name;
  plan.meta.ns = job.meta.ns;
  plan.meta.labels = {{api::kJobLabel, job.meta.name}};
  plan.meta.owners = {{api::kApiVersion, "TrainingJob", job.meta.name, job.meta.uid, true}};
  plan.spec.attempt = job.status.attempt;
  add_workers(observation, workers, plan.spec);
  const std::vector<double> summer_bits = assumed_bits_per_second(observation, pods_of(summers));
  for (size_t j = 0; j < summers.size(); ++j) {
    plan.spec.members.push_back(describe(observation, kSummer, summers[j], summer_bits[j]));
  }
  if (is_settled(observation)) keep_nodes(*observation.plan, plan.spec.members);
  if (!observation.session.has_value()) return plan;
  take_states(*observation.session, plan.spec.members);
  take_summary(*observation.session, plan);
  take_strategies(*observation.session, plan.spec);
  for (const api::PlanMember& member : plan.spec.members) {
    plan.status.acknowledged += member.acknowledged_epoch >= plan.spec.epoch && plan.spec.epoch > 0;
  }
  if (plan.spec.bytes_per_step > 0) {
    take_traffic(job.workers.replicas, observation.session->summary.push_ratio, plan.spec.members);
  }
  return plan;
}

}  // namespace gleaner::reconcile
