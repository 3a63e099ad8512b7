#include "cli/cluster/explain_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"
#include "common/plan/schedule_name.h"

namespace gleaner::cli {
namespace {

std::string uplink_name(const ExplainedJob& job) {
  const bool is_known = job.uplink.ok() && job.uplink->has_value();
  return is_known ? absl::StrCat("the uplink of ", (*job.uplink)->group) : "an uplink";
}

}  // namespace

bool is_longer(double bound_seconds, double seconds) { return bound_seconds > seconds * 1.001 + 1e-6; }

bool uses_summers(const api::ReductionPlanSpec& spec) {
  return spec.strategies.empty() || std::ranges::any_of(spec.strategies, [](const api::PlanStrategy& each) {
           return each.strategy == plan::kSummersStrategy;
         });
}

bool has_binding(const ExplainedJob& job) {
  return job.limit == JobLimit::kSlowestWorker || job.limit == JobLimit::kAllLinks;
}

std::string step_lines(const ExplainedJob& job) {
  if (job.limit == JobLimit::kNothingMoves) return "Step       nothing has to move\n";
  const api::ReductionPlanSpec& spec = job.plan.spec;
  const api::ReductionPlanStatus& status = job.plan.status;
  const std::string measured = status.steps > 0 && status.step_communication_seconds > 0
                                   ? absl::StrCat("Measured   ", measured_text(status), "\n")
                                   : "";
  if (job.limit == JobLimit::kUnknown) {
    return absl::StrCat("Bound      unknown: ", unknown_links(job.plan), "\n", measured);
  }
  const std::string binds = job.limit == JobLimit::kUplink ? uplink_name(job) : job.machines[job.binding].member.name;
  std::string text =
      job.limit == JobLimit::kSchedules
          ? absl::StrCat("Bound      ", format_seconds(spec.bound_seconds), " a step, by the strategies in force\n")
          : absl::StrFormat("Step       %s as planned, %.4f of the bound of %s; %s binds\n",
                            format_seconds(job.seconds), job.seconds / spec.bound_seconds,
                            format_seconds(spec.bound_seconds), binds);
  if (spec.bound_without_summers_seconds > spec.bound_seconds * (1 + kSame)) {
    absl::StrAppendFormat(&text, "Without    summers the bound is %s, %.2f times as long\n",
                          format_seconds(spec.bound_without_summers_seconds),
                          spec.bound_without_summers_seconds / spec.bound_seconds);
  }
  return text + measured;
}

std::string limit_lines(const ExplainedJob& job) {
  if (job.limit == JobLimit::kNothingMoves || job.limit == JobLimit::kUnknown) return "";
  std::string text = "Limit      all links together: each is busy from the first byte to the last\n";
  if (job.limit == JobLimit::kSchedules) text = "Limit      the busiest link of each strategy\n";
  if (job.limit == JobLimit::kUplink) text = absl::StrCat("Limit      ", uplink_name(job), "\n");
  if (job.limit == JobLimit::kSlowestWorker) {
    const auto slowest = std::min_element(job.machines.begin(), job.machines.end(), [](const auto& a, const auto& b) {
      return std::pair(a.member.role != "worker", a.member.bits_per_second) <
             std::pair(b.member.role != "worker", b.member.bits_per_second);
    });
    text = absl::StrFormat("Limit      %s at %s: its own gradient fills its link; only a faster link helps\n",
                           slowest->member.name, format_bits_per_second(slowest->member.bits_per_second));
  }
  if (!uses_summers(job.plan.spec)) return text + "One more   summer: no gain, since summers sum no tensor\n";
  if (job.limit == JobLimit::kSchedules) return text + "One more   summer: helps only the tensors that summers sum\n";
  const double saved = 1 - job.one_more_bound_seconds / job.plan.spec.bound_seconds;
  absl::StrAppend(&text, "One more   summer of ", format_bits_per_second(job.one_more_bits_per_second),
                  job.one_more_group.empty() ? "" : absl::StrCat(" in ", job.one_more_group), ": ");
  if (saved <= kSame) return text + "no gain\n";
  absl::StrAppendFormat(&text, "bound %s, %.2f %% less\n", format_seconds(job.one_more_bound_seconds), saved * 100);
  return text;
}

std::string uplink_line(const FoundUplink& uplink) {
  if (!uplink.ok()) return absl::StrCat("Uplink     unknown: ", uplink.status().message(), "\n");
  if (!uplink->has_value()) return "";
  const BindingUplink& binding = **uplink;
  return absl::StrCat("Uplink     ", binding.group, " binds: ", format_bits_per_second(binding.bits_per_second),
                      " carries ", format_bytes(binding.bytes), " of a step, ", format_seconds(binding.seconds),
                      "; without it a step takes ", format_seconds(binding.without_seconds), "\n");
}

nlohmann::json uplink_json(const FoundUplink& uplink) {
  if (!uplink.ok()) return {{"error", uplink.status().message()}};
  if (!uplink->has_value()) return nullptr;
  const BindingUplink& binding = **uplink;
  return {{"group", binding.group},
          {"bandwidth", binding.bits_per_second},
          {"bytes", binding.bytes},
          {"seconds", binding.seconds},
          {"without_seconds", binding.without_seconds}};
}

}  // namespace gleaner::cli
