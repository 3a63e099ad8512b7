#include "cli/timeline/report.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text_table.h"

namespace gleaner::cli {
namespace {

using nlohmann::ordered_json;

void note_members(const Timeline& timeline, TraceReport& report) {
  const plan::Plan& plan = timeline.plan();
  for (const RankTrace& rank : timeline.trace().ranks) {
    report.events += rank.recording.events.size();
    if (rank.recording.dropped > 0) {
      report.remarks.push_back(absl::StrCat(rank_name(plan, rank), " recorded ",
                                            counted(rank.recording.events.size(), "event"), " and had no room for ",
                                            rank.recording.dropped, " more: trace for a shorter time"));
    }
    if (rank.missing.empty()) continue;
    report.missing.push_back(rank_name(plan, rank));
    report.remarks.push_back(absl::StrCat(rank_name(plan, rank), " is not in this trace (", rank.missing,
                                          "): times that only it recorded count as unknown"));
  }
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    const std::optional<ClockFit>& clock = timeline.clocks()[member];
    report.uncertainties.push_back(clock.has_value() ? clock->uncertainty / kNanosecondsPerSecond : -1);
    const auto& ranks = timeline.trace().ranks;
    const bool recorded = std::any_of(ranks.begin(), ranks.end(), [member](const RankTrace& rank) {
      return rank.member == member && rank.missing.empty() && !rank.recording.events.empty();
    });
    if (clock.has_value() || !recorded) continue;
    report.remarks.push_back(absl::StrCat(member_name(plan, member),
                                          " exchanged nothing with the others during the recording, so its clock can't "
                                          "be compared with theirs, and it is left out"));
  }
}

void note_left_out(const std::map<std::string, size_t>& reasons, TraceReport& report) {
  for (const auto& [reason, count] : reasons) {
    report.remarks.push_back(absl::StrCat(count, count == 1 ? " step is" : " steps are", " left out: ", reason));
  }
}

ordered_json to_json(const Segment& segment, const plan::Plan& plan) {
  ordered_json json = {
      {"stage", std::string(name_of(segment.stage))}, {"begin", seconds(segment.begin)}, {"end", seconds(segment.end)}};
  if (segment.stage != Stage::kUnknown || segment.tensor_step.has_value()) {
    json["member"] = plan.member_name(segment.member);
  }
  if (segment.to.has_value()) json["to"] = plan.member_name(*segment.to);
  if (segment.tensor_step.has_value()) json["tensor"] = plan.tensors[segment.tensor_step->tensor].name;
  if (segment.partition.has_value()) json["partition"] = *segment.partition;
  if (segment.schedule_step.has_value()) json["schedule_step"] = *segment.schedule_step;
  return json;
}

ordered_json to_json(const TraceReport::Row& row, const plan::Plan& plan) {
  ordered_json json = {{"step", row.step.number}, {"begin", seconds(row.step.begin)}, {"end", seconds(row.step.end)}};
  json["seconds"] = seconds(row.step.end - row.step.begin);
  for (size_t stage = 0; stage < kStages; ++stage) {
    json["stages"][std::string(name_of(static_cast<Stage>(stage)))] = seconds(row.path.spent[stage]);
  }
  json["slowest"] = nullptr;
  if (row.path.slowest.has_value()) {
    json["slowest"] = {{"worker", row.path.slowest->worker}, {"seconds", seconds(row.path.slowest->waited)}};
  }
  json["path"] = ordered_json::array();
  for (const Segment& segment : row.path.segments) json["path"].push_back(to_json(segment, plan));
  return json;
}

}  // namespace

TraceReport make_report(const Timeline& timeline, size_t most_steps) {
  TraceReport report;
  note_members(timeline, report);
  std::map<std::string, size_t> reasons;
  std::vector<Step> steps = find_steps(timeline);
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool cut_off = i + 1 == steps.size();  // usually by the end of the trace, which needs no remark
    if (steps[i].incomplete.empty() && (most_steps == 0 || report.rows.size() < most_steps)) {
      StepPath path = walk(timeline, steps[i]);
      report.rows.push_back({std::move(steps[i]), std::move(path)});
    } else if (!steps[i].incomplete.empty() && !cut_off) {
      ++report.left_out;
      ++reasons[steps[i].incomplete];
    }
  }
  note_left_out(reasons, report);
  std::vector<const Step*> complete;
  for (const TraceReport::Row& row : report.rows) complete.push_back(&row.step);
  report.schedules = report_schedules(timeline, complete);
  return report;
}

ordered_json to_json(const TraceReport& report, const Timeline& timeline) {
  const plan::Plan& plan = timeline.plan();
  ordered_json json;
  json["workers"] = plan.workers;
  json["summers"] = plan.summers();
  json["local_ranks"] = plan.local_ranks;
  json["events"] = report.events;
  json["missing"] = report.missing;
  json["remarks"] = report.remarks;
  json["left_out"] = report.left_out;
  json["clocks"] = ordered_json::array();
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    const double uncertainty = report.uncertainties[member];
    json["clocks"].push_back({{"member", plan.member_name(member)},
                              {"uncertainty_seconds", uncertainty < 0 ? ordered_json() : ordered_json(uncertainty)}});
  }
  json["schedules"] = to_json(report.schedules, plan);
  json["steps"] = ordered_json::array();
  for (const TraceReport::Row& row : report.rows) json["steps"].push_back(to_json(row, plan));
  return json;
}

}  // namespace gleaner::cli
