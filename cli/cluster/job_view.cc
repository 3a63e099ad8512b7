#include "cli/cluster/job_view.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/cluster/explain_view.h"
#include "cli/cluster/rank_view.h"
#include "cli/cluster/table.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

constexpr size_t kEvents = 10;

using Line = std::vector<std::string>;

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string workers(const api::TrainingJobStatus& status, uint32_t replicas) {
  return absl::StrCat(status.workers_ready + status.workers_succeeded, "/", replicas);
}

// Returns the time that the job has been in its phase: since the latest transition of a condition that is true.
std::string since(const api::TrainingJobStatus& status, absl::Time now) {
  absl::Time latest = absl::InfinitePast();
  for (const api::Condition& condition : status.conditions) {
    if (condition.status) latest = std::max(latest, condition.last_transition);
  }
  return latest == absl::InfinitePast() ? "" : absl::StrCat(", since ", age(latest, now));
}

std::string worker_line(const api::TrainingJob& job) {
  const api::TrainingJobStatus& status = job.status;
  std::string text = absl::StrCat(status.workers_ready, " of ", job.workers.replicas, " running");
  if (status.workers_succeeded > 0) absl::StrAppend(&text, ", ", status.workers_succeeded, " succeeded");
  if (status.workers_failed > 0) absl::StrAppend(&text, ", ", status.workers_failed, " failed");
  if (job.workers.local_ranks > 1) absl::StrAppend(&text, ", ", job.workers.local_ranks, " processes each");
  return text;
}

std::string summer_line(const api::TrainingJob& job) {
  if (!api::uses_summers(job.communication.strategy)) {
    return absl::StrCat("none: the strategy is ", api::to_string(job.communication.strategy));
  }
  const api::SummersWanted& wanted = job.communication.summers;
  if (wanted.max == 0) return "none wanted";
  std::string text = absl::StrCat(job.status.summers_ready, " running, ", wanted.min, " to ", wanted.max, " wanted");
  if (job.status.summers.reason.empty()) return text;
  return absl::StrCat(text, "; the autoscaler wants ", job.status.summers.wanted, ": ", job.status.summers.reason);
}

// Returns the strategy that the job asks for, with its options, and the strategies of the plan in force.
std::string strategy_line(const api::TrainingJob& job) {
  const api::Communication& wanted = job.communication;
  std::string text(api::to_string(wanted.strategy));
  if (!wanted.stages.empty()) absl::StrAppend(&text, " of stages ", absl::StrJoin(wanted.stages, ", "));
  if (wanted.radix > 0) absl::StrAppend(&text, " of radix ", wanted.radix);
  if (!job.status.communication.strategy.empty())
    absl::StrAppend(&text, "; tensors are summed by ", job.status.communication.strategy);
  return text;
}

// Returns the class of bits that is in force, and otherwise the class that the job asks for.
std::string bits_line(const api::TrainingJob& job) {
  if (!job.status.communication.bits.empty()) return job.status.communication.bits;
  if (job.communication.bits.has_value()) return std::string(api::to_string(*job.communication.bits));
  return "-";
}

void append_plan(std::vector<Line>& lines, const api::ReductionPlan& plan) {
  lines.push_back({"Plan", absl::StrCat("epoch ", plan.spec.epoch, " of attempt ", plan.spec.attempt, ", ",
                                        plan.status.acknowledged, " of ", plan.spec.members.size(), " acknowledged")});
  if (plan.spec.bytes_per_step == 0) return;
  lines.push_back({"Bytes per step", step_bytes_text(plan.spec)});
  const std::string unknown = unknown_links(plan);
  std::string bound = unknown.empty() ? absl::StrCat(format_seconds(plan.spec.bound_seconds), " a step")
                                      : absl::StrCat("unknown: ", unknown);
  if (plan.spec.bound_without_summers_seconds > plan.spec.bound_seconds) {
    absl::StrAppend(&bound, ", without summers ", format_seconds(plan.spec.bound_without_summers_seconds));
  }
  lines.push_back({"Bound", bound});
  if (plan.status.steps == 0 || plan.status.step_communication_seconds <= 0) return;
  lines.push_back({"Measured", measured_text(plan.status)});
}

std::string conditions_table(const std::vector<api::Condition>& conditions, absl::Time now) {
  if (conditions.empty()) return "";
  std::vector<Line> rows = {{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}};
  for (const api::Condition& condition : conditions) {
    rows.push_back({condition.type, condition.status ? "True" : "False", age(condition.last_transition, now),
                    or_dash(condition.reason), condition.message});
  }
  return absl::StrCat("\n", table(rows));
}

std::string events_table(std::vector<JobEvent> events, absl::Time now) {
  if (events.empty()) return "\nNo recent events.\n";
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.last < b.last; });
  std::vector<Line> rows = {{"AGE", "TYPE", "REASON", "COUNT", "MESSAGE"}};
  const size_t first = events.size() > kEvents ? events.size() - kEvents : 0;
  for (size_t i = first; i < events.size(); ++i) {
    const JobEvent& event = events[i];
    rows.push_back({age(event.last, now), event.type, event.reason, absl::StrCat(event.count), event.message});
  }
  return absl::StrCat("\n", table(rows));
}

}  // namespace

JobEvent parse_event(const nlohmann::json& object) {
  JobEvent event;
  event.type = text_of(object, "type");
  event.reason = text_of(object, "reason");
  event.message = text_of(object, "message");
  const auto count = object.find("count");
  if (count != object.end() && count->is_number_integer()) event.count = count->get<int64_t>();
  for (const char* field : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    const auto time = api::parse_time(text_of(object, field));
    if (!time.ok()) continue;
    event.last = *time;
    break;
  }
  return event;
}

std::string jobs_table(std::vector<api::TrainingJob> jobs, bool with_namespace, absl::Time now) {
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return std::tie(a.meta.ns, a.meta.name) < std::tie(b.meta.ns, b.meta.name);
  });
  std::vector<Line> rows = {{"NAME", "PHASE", "WORKERS", "SUMMERS", "EPOCH", "GOODPUT", "EFFICIENCY", "AGE"}};
  for (const api::TrainingJob& job : jobs) {
    const api::TrainingJobStatus& status = job.status;
    rows.push_back({job.meta.name, or_dash(status.phase), workers(status, job.workers.replicas),
                    absl::StrCat(status.summers_ready), status.epoch == 0 ? "-" : absl::StrCat(status.epoch),
                    or_dash(status.communication.goodput), or_dash(status.communication.efficiency),
                    age(job.meta.creation_time, now)});
  }
  if (with_namespace) {
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].insert(rows[i].begin(), i == 0 ? "NAMESPACE" : jobs[i - 1].meta.ns);
    }
  }
  return table(rows);
}

std::string job_text(const api::TrainingJob& job, const std::optional<api::ReductionPlan>& plan,
                     std::vector<JobEvent> events, absl::Time now) {
  std::vector<Line> lines = {
      {"Name", job.meta.name},
      {"Namespace", job.meta.ns},
      {"Phase", absl::StrCat(job.status.phase.empty() ? "not handled by an operator yet: is the operator running?"
                                                      : job.status.phase,
                             since(job.status, now))},
      {"Age", age(job.meta.creation_time, now)},
      {"Workers", worker_line(job)},
      {"Strategy", strategy_line(job)},
      {"Bits", bits_line(job)},
      {"Summers", summer_line(job)},
      {"Restarts", absl::StrCat(job.status.restarts, " of ", job.run_policy.backoff_limit)}};
  const std::optional<api::RankMap>& ranks = job.status.communication.rank_map;
  if (ranks.has_value() && ranks->attempt == job.status.attempt) lines.push_back({"Ranks", ranks_reason(*ranks)});
  if (plan) append_plan(lines, *plan);
  return absl::StrCat(table(lines), conditions_table(job.status.conditions, now), events_table(std::move(events), now));
}

}  // namespace gleaner::cli
