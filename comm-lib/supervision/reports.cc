#include "comm-lib/supervision/reports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"

namespace gleaner::supervision {

void Reports::add(uint32_t member, absl::Duration since, const absl::Status& why, absl::Duration now) {
  open_.insert_or_assign(member, OpenReport{since, now, now, why});
}

void Reports::add_worker(uint32_t member, const absl::Status& why, absl::Duration now) {
  open_.insert_or_assign(member, OpenReport{now, now, now, why, true});
}

void Reports::on_plan(const plan::Plan& plan) {
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    const uint32_t since = plan.members[member].is_here() ? plan.members[member].since : 0;
    if (member < since_.size() && since_[member] != since) withdraw(member);
    if (member == since_.size()) since_.push_back(since);
    since_[member] = since;
    if (member == names_.size()) names_.emplace_back();
    names_[member] = absl::StrCat(plan.member_name(member), " at ", plan.members[member].address);
  }
}

void Reports::on_coordinator_lost(absl::Duration now) {
  if (!away_since_.has_value()) away_since_ = now;
}

// Repeats all reports: this may be another coordinator, which has not received them.
void Reports::on_coordinator_found() {
  away_since_.reset();
  if (GLN_MUTATION("a report is not repeated")) return;
  for (auto& [member, open] : open_) open.repeat_at = -absl::InfiniteDuration();
}

void Reports::on_coordinator_gone(const absl::Status& why) { gone_ = why; }

absl::Status Reports::failure_of(uint32_t member, const OpenReport& open, absl::Duration now) const {
  const auto fail = [&](absl::Duration limit, const std::string& coordinator) {
    return absl::UnavailableError(absl::StrCat(names_[member], " is lost: out of reach for ",
                                               absl::FormatDuration(limit), ", and ", coordinator, " (",
                                               open.why.message(), ")"));
  };
  if (!gone_.ok() && now - open.since >= options_.deadline &&
      !GLN_MUTATION("a summer that is lost after the coordinator is waited for")) {
    return fail(options_.deadline,
                absl::StrCat("no coordinator is left that could make a plan without it: ", gone_.message()));
  }
  const bool away = away_since_.has_value() && gone_.ok();
  if (away && now - std::max(open.since, *away_since_) >= options_.plan_timeout &&
      !GLN_MUTATION("a worker waits without an end for the next coordinator")) {
    return fail(options_.plan_timeout, "the coordinator, which could make a plan without it, is out of reach, too");
  }
  return absl::OkStatus();
}

void Reports::fail_without_verdict(uint32_t member, const OpenReport& open, absl::Duration now,
                                   ReportActions& actions) const {
  const bool has_coordinator = gone_.ok() && !away_since_.has_value();
  if (has_coordinator && now - open.since < options_.verdict_timeout) return;
  actions.lost_worker = member;
  actions.failure =
      has_coordinator
          ? absl::UnavailableError(absl::StrCat(open.why.message(), "; the coordinator has not answered within ",
                                                absl::FormatDuration(options_.verdict_timeout)))
          : open.why;
}

void Reports::tick(absl::Duration now, const std::vector<uint32_t>& sums, ReportActions& actions) {
  for (auto& [member, open] : open_) {
    if (open.is_of_worker) {
      if (actions.failure.ok()) fail_without_verdict(member, open, now, actions);
    } else if (now >= open.warn_at) {
      open.warn_at = now + options_.warn_every;
      actions.warnings.push_back(absl::StrCat(
          names_[member], ": ", open.why.message(),
          !gone_.ok()               ? "; no coordinator is left that could make a plan without it"
          : away_since_.has_value() ? "; waiting for the coordinator, which is out of reach, to make a plan without it"
                                    : "; waiting for a plan without it"));
    }
    if (!open.is_of_worker && std::ranges::find(sums, member) != sums.end()) {
      actions.failure.Update(failure_of(member, open, now));
    }
    // A coordinator that is out of reach gets the report when it returns.
    if (now < open.repeat_at || away_since_.has_value() || !gone_.ok()) continue;
    open.repeat_at = GLN_MUTATION("a report is not repeated") ? absl::InfiniteDuration() : now + options_.repeat_every;
    actions.reports.push_back({member, open.why});
  }
}

}  // namespace gleaner::supervision
