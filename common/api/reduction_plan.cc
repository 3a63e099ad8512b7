#include "common/api/reduction_plan.h"

#include <algorithm>

#include "common/api/fields.h"
#include "common/api/text.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

constexpr size_t kMaxTransports = 8;  // of a member, by the schema

void read_member(const Fields& fields, PlanMember& member) {
  fields.text("name", member.name);
  fields.text("role", member.role);
  if (fields.find("rank") != nullptr) fields.number("rank", member.rank.emplace());
  fields.text("pod", member.pod);
  fields.text("node", member.node);
  fields.text("address", member.address);
  fields.texts("transports", member.transports);
  fields.whole("bitsPerSecond", member.bits_per_second);
  fields.flag("bandwidthAssumed", member.bandwidth_assumed);
  fields.number("ownedBytes", member.owned_bytes);
  fields.number("trafficBytes", member.traffic_bytes);
  fields.flag("binds", member.binds);
  fields.number("acknowledgedEpoch", member.acknowledged_epoch);
  fields.text("slow", member.slow);
}

void read_strategy(const Fields& fields, PlanStrategy& strategy) {
  fields.text("strategy", strategy.strategy);
  fields.number("tensors", strategy.tensors);
  fields.number("bytes", strategy.bytes);
}

json to_json(const PlanStrategy& strategy) {
  return {{"strategy", required_text(strategy.strategy, kMaxReason)},
          {"tensors", strategy.tensors},
          {"bytes", strategy.bytes}};
}

void read_other_bits(const Fields& fields, std::optional<PlanOtherBits>& other) {
  if (!fields.present()) return;
  other.emplace();
  fields.text("bits", other->bits);
  fields.text("strategy", other->strategy);
  fields.micros("stepMicroseconds", other->step_seconds);
  fields.micros("insteadOfMicroseconds", other->instead_of_seconds);
}

json to_json(const PlanOtherBits& other) {
  return {{"bits", shortened(other.bits, kMaxShortWord)},
          {"strategy", shortened(other.strategy, kMaxList)},
          {"stepMicroseconds", whole_number(other.step_seconds * 1e6)},
          {"insteadOfMicroseconds", whole_number(other.instead_of_seconds * 1e6)}};
}

void read_schedule(const Fields& fields, PlanSchedule& schedule) {
  fields.text("algorithm", schedule.algorithm);
  fields.numbers("stages", schedule.stages, 1);
  fields.number("radix", schedule.radix, 1);
  fields.numbers("ranks", schedule.ranks);
}

json to_json(const PlanSchedule& schedule) {
  json object = {{"algorithm", required_text(schedule.algorithm, kMaxWord)}};
  if (!schedule.stages.empty()) object["stages"] = schedule.stages;
  if (schedule.radix > 0) object["radix"] = schedule.radix;
  if (!schedule.ranks.empty()) object["ranks"] = schedule.ranks;
  return object;
}

json to_json(const PlanMember& member) {
  json object = {{"name", required_text(member.name, kMaxWord)},
                 {"role", member.role},
                 {"bitsPerSecond", whole_number(member.bits_per_second)},
                 {"ownedBytes", member.owned_bytes},
                 {"trafficBytes", member.traffic_bytes},
                 {"binds", member.binds},
                 {"acknowledgedEpoch", member.acknowledged_epoch}};
  if (member.rank.has_value()) object["rank"] = *member.rank;
  if (member.bandwidth_assumed) object["bandwidthAssumed"] = true;
  if (!member.slow.empty()) object["slow"] = shortened(member.slow, kMaxEndpoint);
  if (!member.pod.empty()) object["pod"] = shortened(member.pod, kMaxName);
  if (!member.node.empty()) object["node"] = shortened(member.node, kMaxName);
  if (!member.address.empty()) object["address"] = shortened(member.address, kMaxEndpoint);
  for (size_t i = 0; i < std::min(member.transports.size(), kMaxTransports); ++i) {
    object["transports"].push_back(shortened(member.transports[i], kMaxShortWord));
  }
  return object;
}

json spec_json(const ReductionPlanSpec& spec) {
  json object = {{"epoch", spec.epoch},
                 {"attempt", spec.attempt},
                 {"tensors", spec.tensors},
                 {"partitions", spec.partitions},
                 {"bytesPerStep", spec.bytes_per_step},
                 {"pushBytesPerStep", spec.push_bytes_per_step},
                 {"denseBytesPerStep", spec.dense_bytes_per_step},
                 {"boundMicroseconds", whole_number(spec.bound_seconds * 1e6)},
                 {"boundWithoutSummersMicroseconds", whole_number(spec.bound_without_summers_seconds * 1e6)},
                 {"memberCount", spec.members.size()},
                 {"members", json::array()}};
  if (spec.bound_seconds > 0) object["bound"] = format_seconds(spec.bound_seconds);
  if (!spec.strategy.empty()) object["strategy"] = shortened(spec.strategy, kMaxList);
  if (!spec.bits.empty()) object["bits"] = shortened(spec.bits, kMaxShortWord);
  if (spec.other_bits.has_value()) object["otherBits"] = to_json(*spec.other_bits);
  if (spec.rank_map.has_value()) object["rankMap"] = to_json(*spec.rank_map);
  for (const PlanStrategy& strategy : spec.strategies) object["strategies"].push_back(to_json(strategy));
  for (const PlanSchedule& schedule : spec.schedules) object["schedules"].push_back(to_json(schedule));
  for (const PlanMember& member : spec.members) object["members"].push_back(to_json(member));
  return object;
}

}  // namespace

absl::StatusOr<ReductionPlan> parse_reduction_plan(const json& object) {
  absl::StatusOr<ObjectMeta> meta = parse_meta(object);
  if (!meta.ok()) return meta.status();
  ReductionPlan plan{.meta = *std::move(meta), .spec = {}, .status = {}};
  absl::Status status;
  const Fields document(object, "", status);
  const Fields spec = document.object("spec");
  spec.number("epoch", plan.spec.epoch);
  spec.number("attempt", plan.spec.attempt);
  spec.text("strategy", plan.spec.strategy);
  spec.text("bits", plan.spec.bits);
  read_other_bits(spec.object("otherBits"), plan.spec.other_bits);
  spec.list("strategies", plan.spec.strategies, read_strategy);
  spec.list("schedules", plan.spec.schedules, read_schedule);
  read_rank_map(spec.object("rankMap"), plan.spec.rank_map);
  spec.number("tensors", plan.spec.tensors);
  spec.number("partitions", plan.spec.partitions);
  spec.number("bytesPerStep", plan.spec.bytes_per_step);
  spec.number("pushBytesPerStep", plan.spec.push_bytes_per_step);
  spec.number("denseBytesPerStep", plan.spec.dense_bytes_per_step);
  spec.micros("boundMicroseconds", plan.spec.bound_seconds);
  spec.micros("boundWithoutSummersMicroseconds", plan.spec.bound_without_summers_seconds);
  spec.list("members", plan.spec.members, read_member);
  const Fields measured = document.object("status");
  measured.number("acknowledged", plan.status.acknowledged);
  measured.number("committedEpoch", plan.status.committed_epoch);
  measured.number("steps", plan.status.steps);
  measured.micros("stepCommunicationMicroseconds", plan.status.step_communication_seconds);
  measured.whole("goodputBytesPerSecond", plan.status.goodput_bytes_per_second);
  measured.decimal("efficiency", plan.status.efficiency);
  measured.text("packs", plan.status.packs);
  measured.text("efficiencyBasis", plan.status.efficiency_basis);
  if (!status.ok()) return status;
  return plan;
}

json to_json(const ReductionPlanStatus& status) {
  json object = {{"acknowledged", status.acknowledged},
                 {"committedEpoch", status.committed_epoch},
                 {"steps", status.steps},
                 {"stepCommunicationMicroseconds", whole_number(status.step_communication_seconds * 1e6)},
                 {"goodputBytesPerSecond", whole_number(status.goodput_bytes_per_second)},
                 {"efficiency", decimal_text(status.efficiency)}};
  if (!status.packs.empty()) object["packs"] = shortened(status.packs, kMaxList);
  if (!status.efficiency_basis.empty()) object["efficiencyBasis"] = status.efficiency_basis;
  return object;
}

json to_json(const ReductionPlan& plan) {
  return {{"apiVersion", kApiVersion},
          {"kind", "ReductionPlan"},
          {"metadata", to_json(plan.meta)},
          {"spec", spec_json(plan.spec)},
          {"status", to_json(plan.status)}};
}

}  // namespace gleaner::api
