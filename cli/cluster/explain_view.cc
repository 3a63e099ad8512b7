#include "cli/cluster/explain_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/cluster/explain_step.h"
#include "cli/cluster/rank_view.h"
#include "cli/cluster/table.h"
#include "cli/cluster/transports_view.h"
#include "common/base/first_few.h"
#include "common/base/median.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/model.h"
#include "common/plan/schedule_name.h"

namespace gleaner::cli {
namespace {

std::string percent(double part) { return absl::StrFormat("%.2f %%", part * 100); }

// Returns the fraction of the members' bytes that a step moves. It can be below 1, because a plan contains every tensor
// that was ever declared, including those that move only once, such as parameters that are broadcast at the start.
double step_part(const api::ReductionPlanSpec& spec) {
  double owned = 0;
  for (const api::PlanMember& member : spec.members) owned += static_cast<double>(member.owned_bytes);
  return owned > 0 ? static_cast<double>(spec.bytes_per_step) / owned : 1;
}

plan::Fleet fleet_of(const api::ReductionPlan& plan) {
  plan::Fleet fleet;
  for (const api::PlanMember& member : plan.spec.members) {
    if (!takes_part(member)) continue;
    (member.role == "worker" ? fleet.worker_bits_per_second : fleet.summer_bits_per_second)
        .push_back(member.bits_per_second);
  }
  fleet.push_ratio = push_ratio_of(plan.spec);
  return fleet;
}

bool is_assumed(const api::PlanMember& member) { return member.bandwidth_assumed; }

bool uses_schedules(const api::ReductionPlanSpec& spec) {
  return std::ranges::any_of(spec.strategies, [](const api::PlanStrategy& each) {
    return each.strategy != plan::kSummersStrategy && each.bytes > 0;
  });
}

JobLimit limit_of(const api::ReductionPlan& plan, const plan::Fleet& fleet, double bytes, double bound_seconds) {
  if (std::any_of(plan.spec.members.begin(), plan.spec.members.end(), is_assumed)) return JobLimit::kUnknown;
  if (bound_seconds <= 0) return JobLimit::kNothingMoves;
  if (uses_schedules(plan.spec)) return JobLimit::kSchedules;
  const double least = plan::slowest_worker_seconds(fleet, bytes);
  if (is_longer(bound_seconds, plan::bound_seconds(fleet, bytes))) return JobLimit::kUplink;
  return bound_seconds <= least * (1 + kSame) ? JobLimit::kSlowestWorker : JobLimit::kAllLinks;
}

std::string packs_line(const api::ReductionPlanStatus& status) {
  return status.packs.empty() ? "" : absl::StrCat("Packs      ", status.packs, "\n");
}

std::string strategy_line(const api::ReductionPlanSpec& spec) {
  if (spec.strategies.empty()) return "";
  return absl::StrCat("Strategy   ",
                      absl::StrJoin(spec.strategies, "; ",
                                    [](std::string* out, const auto& each) {
                                      absl::StrAppend(out, counted(each.tensors, "tensor"), " of ",
                                                      format_bytes(static_cast<double>(each.bytes)), " by ",
                                                      each.strategy);
                                    }),
                      "\n");
}

// Names the class of bits, and what a step would take in the other one.
std::string bits_line(const api::ReductionPlanSpec& spec) {
  if (spec.bits.empty()) return "";
  std::string text = absl::StrCat("Bits       ", spec.bits);
  if (const std::optional<api::PlanOtherBits>& other = spec.other_bits) {
    absl::StrAppend(
        &text, "; ",
        plan::describe_other_bits(other->bits, other->step_seconds, other->instead_of_seconds, other->strategy));
  }
  return text + "\n";
}

nlohmann::json other_bits_json(const std::optional<api::PlanOtherBits>& other) {
  if (!other.has_value()) return nullptr;
  return {{"bits", other->bits},
          {"seconds", other->step_seconds},
          {"instead_of_seconds", other->instead_of_seconds},
          {"strategy", other->strategy}};
}

nlohmann::json strategies_json(const api::ReductionPlanSpec& spec) {
  nlohmann::json strategies = nlohmann::json::array();
  for (const api::PlanStrategy& each : spec.strategies) {
    strategies.push_back({{"strategy", each.strategy}, {"tensors", each.tensors}, {"bytes", each.bytes}});
  }
  return strategies;
}

// Inserts the column RANK into the table of machines, after their names.
void add_ranks(const ExplainedJob& job, std::vector<std::vector<std::string>>& rows) {
  rows.front().insert(rows.front().begin() + 1, "RANK");
  for (size_t i = 0; i < job.machines.size(); ++i) {
    rows[i + 1].insert(rows[i + 1].begin() + 1, ranks_of(job.machines[i].member, job.local_ranks));
  }
}

// Returns a line for each slow summer.
std::string slow_lines(const ExplainedJob& job) {
  std::string text;
  for (const api::PlanMember& member : job.plan.spec.members) {
    if (!member.slow.empty()) absl::StrAppend(&text, "Slow       ", member.name, ": ", member.slow, "\n");
  }
  return text;
}

}  // namespace

bool takes_part(const api::PlanMember& member) { return member.slow.empty() || member.owned_bytes > 0; }

double push_ratio_of(const api::ReductionPlanSpec& spec) {
  if (spec.push_bytes_per_step == 0) return 1;  // in the plan of an earlier operator
  const double ratio = static_cast<double>(spec.push_bytes_per_step) / static_cast<double>(spec.bytes_per_step);
  return std::clamp(ratio, 1 / plan::kMaxPushRatio, plan::kMaxPushRatio);
}

std::string measured_text(const api::ReductionPlanStatus& status) {
  const std::string& basis = status.efficiency_basis;
  std::string efficiency = absl::StrFormat("efficiency %.1f %%", status.efficiency * 100);
  if (basis == "latency") efficiency = "latency-bound, since a step is too small to fill a link";
  if (basis == "unknown_bandwidth") efficiency = "efficiency unknown";
  if (basis == "bandwidth_too_low") {
    efficiency =
        "efficiency unknown, since steps are faster than the bound: a link is faster than its stated bandwidth";
  }
  if (basis == "nothing_moves") efficiency = "nothing has to move";
  return absl::StrFormat("%s a step in the last minute, %d steps in all: %s; goodput %s/s per worker",
                         format_seconds(status.step_communication_seconds), status.steps, efficiency,
                         format_bytes(status.goodput_bytes_per_second));
}

std::string unknown_links(const api::ReductionPlan& plan) {
  constexpr size_t kNamed = 5;
  std::vector<std::string> names;
  for (const api::PlanMember& member : plan.spec.members) {
    if (!member.bandwidth_assumed) continue;
    names.push_back(member.node.empty() ? member.name : absl::StrCat(member.name, " on ", member.node));
  }
  if (names.empty()) return "";
  return absl::StrCat("the network speed of ", first_few(names, kNamed),
                      " is unknown; label their nodes gleaner.dev/bandwidth=25Gbit, or give the agents --bandwidth");
}

std::string step_bytes_text(const api::ReductionPlanSpec& spec) {
  return format_bytes_instead_of(static_cast<double>(spec.bytes_per_step),
                                 static_cast<double>(spec.dense_bytes_per_step));
}

absl::StatusOr<ExplainedJob> explain_job(api::ReductionPlan plan, uint32_t local_ranks) {
  const api::ReductionPlanSpec& spec = plan.spec;
  if (spec.bytes_per_step == 0) {
    return absl::FailedPreconditionError(
        "its plan has no tensors yet: workers declare them with their first push_pull, when all of them run");
  }
  const plan::Fleet fleet = fleet_of(plan);
  absl::Status valid = plan::validate(fleet);
  valid.Update(check_ranks(spec));
  if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat("its ReductionPlan: ", valid.message()));
  const auto bytes = static_cast<double>(spec.bytes_per_step);
  ExplainedJob job{.local_ranks = local_ranks};
  const double scale = step_part(spec);
  for (api::PlanMember member : spec.members) {
    const double traffic = scale * static_cast<double>(member.traffic_bytes);
    const double owned = scale * static_cast<double>(member.owned_bytes);
    member.owned_bytes = static_cast<uint64_t>(std::llround(owned));
    member.traffic_bytes = static_cast<uint64_t>(std::llround(traffic));
    const double seconds = 8 * traffic / member.bits_per_second;
    job.machines.push_back({std::move(member), owned / bytes, seconds});
    if (job.machines.back().seconds > job.seconds) {
      job.seconds = job.machines.back().seconds;
      job.binding = job.machines.size() - 1;
    }
  }
  job.limit = limit_of(plan, fleet, bytes, spec.bound_seconds);
  job.one_more_bits_per_second =
      upper_median(fleet.k() > 0 ? fleet.summer_bits_per_second : fleet.worker_bits_per_second);
  plan::Fleet larger = fleet;
  larger.summer_bits_per_second.push_back(job.one_more_bits_per_second);
  job.one_more_bound_seconds = plan::bound_seconds(larger, bytes);
  if (job.limit == JobLimit::kUnknown) job.seconds = job.one_more_bound_seconds = 0;
  if (job.limit == JobLimit::kUplink) {
    job.seconds = std::max(job.seconds, spec.bound_seconds);
    job.one_more_bound_seconds = spec.bound_seconds;
  }
  if (job.limit == JobLimit::kSchedules) {
    job.seconds = spec.bound_seconds;
    job.one_more_bound_seconds = uses_summers(spec) ? 0 : spec.bound_seconds;
  }
  job.plan = std::move(plan);
  return job;
}

std::string to_text(const ExplainedJob& job) {
  const api::ReductionPlanSpec& spec = job.plan.spec;
  std::vector<std::vector<std::string>> rows = {
      {"MACHINE", "NODE", "BANDWIDTH", "OWNS", "SHARE", "MOVES EACH WAY", "TAKES", ""}};
  for (size_t i = 0; i < job.machines.size(); ++i) {
    const ExplainedMachine& machine = job.machines[i];
    const bool binds = i == job.binding && has_binding(job);
    const bool is_known = !machine.member.bandwidth_assumed && job.limit != JobLimit::kSchedules;
    rows.push_back(
        {machine.member.name, or_dash(machine.member.node),
         machine.member.bandwidth_assumed ? "unknown" : format_bits_per_second(machine.member.bits_per_second),
         format_bytes(static_cast<double>(machine.member.owned_bytes)), percent(machine.share),
         job.limit == JobLimit::kSchedules ? "-" : format_bytes(static_cast<double>(machine.member.traffic_bytes)),
         is_known ? format_seconds(machine.seconds) : "-",
         binds                         ? "binds"
         : machine.member.slow.empty() ? ""
                                       : "slow"});
  }
  if (std::ranges::any_of(spec.members, [](const auto& member) { return member.rank.has_value(); })) {
    add_ranks(job, rows);
  }
  return absl::StrCat("TrainingJob ", job.plan.meta.key(), ", epoch ", spec.epoch, " of attempt ", spec.attempt, ": ",
                      format_bytes(static_cast<double>(spec.bytes_per_step)), " a step, tensors: ", spec.tensors,
                      ", partitions: ", spec.partitions, "\n\n", table(rows), "\n", strategy_line(spec),
                      bits_line(spec), packs_line(job.plan.status), step_lines(job), slow_lines(job), limit_lines(job),
                      uplink_line(job.uplink), ranks_text(spec, job.local_ranks),
                      transports_text(transports_of(spec.members)));
}

nlohmann::json to_json(const ExplainedJob& job) {
  using nlohmann::json;
  const api::ReductionPlanSpec& spec = job.plan.spec;
  const api::ReductionPlanStatus& status = job.plan.status;
  json machines = json::array();
  for (size_t i = 0; i < job.machines.size(); ++i) {
    const api::PlanMember& member = job.machines[i].member;
    machines.push_back({{"name", member.name},
                        {"role", member.role},
                        {"pod", member.pod},
                        {"node", member.node},
                        {"rank", member.rank.has_value() ? json(*member.rank) : json()},
                        {"bandwidth", member.bits_per_second},
                        {"bandwidth_assumed", member.bandwidth_assumed},
                        {"bytes", member.owned_bytes},
                        {"share", job.machines[i].share},
                        {"traffic_bytes", member.traffic_bytes},
                        {"seconds", job.machines[i].seconds},
                        {"slow", member.slow},
                        {"binds", i == job.binding && has_binding(job)}});
  }
  const char* limit = job.limit == JobLimit::kAllLinks        ? "all_links"
                      : job.limit == JobLimit::kSlowestWorker ? "slowest_worker"
                      : job.limit == JobLimit::kUplink        ? "uplink"
                      : job.limit == JobLimit::kSchedules     ? "schedules"
                      : job.limit == JobLimit::kUnknown       ? "unknown"
                                                              : "nothing_moves";
  return {{"namespace", job.plan.meta.ns},
          {"job", job.plan.meta.name},
          {"epoch", spec.epoch},
          {"attempt", spec.attempt},
          {"bytes_per_step", spec.bytes_per_step},
          {"dense_bytes_per_step", std::max(spec.dense_bytes_per_step, spec.bytes_per_step)},
          {"tensors", spec.tensors},
          {"strategy", spec.strategy},
          {"strategies", strategies_json(spec)},
          {"bits", spec.bits},
          {"other_bits", other_bits_json(spec.other_bits)},
          {"partitions", spec.partitions},
          {"packs", status.packs},
          {"machines", std::move(machines)},
          {"rank_map", ranks_json(spec)},
          {"transports", transports_json(transports_of(spec.members))},
          {"seconds", job.seconds},
          {"bound_seconds", spec.bound_seconds},
          {"bound_without_summers_seconds", spec.bound_without_summers_seconds},
          {"limit", limit},
          {"uplink", uplink_json(job.uplink)},
          {"one_more_summer",
           {{"bandwidth", job.one_more_bits_per_second},
            {"group", job.one_more_group},
            {"bound_seconds", job.one_more_bound_seconds}}},
          {"measured",
           {{"steps", status.steps},
            {"step_seconds", status.step_communication_seconds},
            {"efficiency", status.efficiency},
            {"efficiency_basis", status.efficiency_basis},
            {"goodput_bytes_per_second", status.goodput_bytes_per_second}}}};
}

std::string gradients_text(const api::Communication& communication, const api::ReductionPlanSpec& spec) {
  std::vector<std::string> parts;
  if (communication.compression != api::Compression::kNone) {
    parts.push_back(absl::StrCat("sent as ", api::to_string(communication.compression)));
  }
  if (communication.fusion_bytes == api::kFuseAll) {
    parts.push_back("all in one tensor of each type");
  } else if (communication.fusion_bytes == api::kFuseAuto) {
    parts.push_back("small ones in packs of a size that rank 0 chooses");
  } else if (communication.fusion_bytes > 0) {
    parts.push_back(absl::StrCat("those of at most ", format_bytes(static_cast<double>(communication.fusion_bytes)),
                                 " in packs of more"));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (!parts.empty()) text += ", unless the script chooses otherwise";
  if (spec.dense_bytes_per_step > spec.bytes_per_step) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "bytes per step: ", step_bytes_text(spec));
  }
  return text.empty() ? "" : absl::StrCat("Gradients  ", text, "\n");
}

nlohmann::json gradients_json(const api::Communication& communication) {
  nlohmann::json object = {{"compression", api::to_string(communication.compression)}, {"fusion_bytes", nullptr}};
  if (communication.fusion_bytes > 0) object["fusion_bytes"] = communication.fusion_bytes;
  if (communication.fusion_bytes == api::kFuseAll) object["fusion_bytes"] = "inf";
  if (communication.fusion_bytes == api::kFuseAuto) object["fusion_bytes"] = "auto";
  return object;
}

std::string autoscaler_text(const api::SummersStatus& summers, absl::Time now) {
  if (summers.reason.empty()) return "";
  std::string text =
      absl::StrCat("Autoscaler ", counted(static_cast<uint64_t>(summers.wanted), "summer"), " wanted, ", summers.had,
                   " in the plan: ", summers.reason, summers.message.empty() ? "" : ", ", summers.message, "\n");
  if (!summers.last_change.empty() && summers.last_change_time.has_value()) {
    absl::StrAppend(&text, "Last       change, ", age(*summers.last_change_time, now), " ago: ", summers.last_change,
                    "\n");
  }
  return text;
}

nlohmann::json to_json(const api::SummersStatus& summers) {
  nlohmann::json object = {{"wanted", summers.wanted},
                           {"had", summers.had},
                           {"reason", summers.reason},
                           {"message", summers.message},
                           {"last_change", summers.last_change}};
  if (summers.last_change_time.has_value()) object["last_change_time"] = api::format_time(*summers.last_change_time);
  return object;
}

}  // namespace gleaner::cli
