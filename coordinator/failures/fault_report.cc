#include "coordinator/failures/fault_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"

namespace gleaner::coordinator {

std::string describe(const FaultReport& report, const Roster& roster) {
  return absl::StrCat(roster.name(report.reporter), " reports: ", report.why.message());
}

absl::StatusCode code_for_others(const absl::Status& why) {
  return absl::IsInvalidArgument(why) ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnavailable;
}

Finding judge(const FaultReport& report, const Roster& roster, const DeadlockDetector& deadlocks) {
  if (report.member >= roster.members()) {
    const std::string told = absl::StrCat(roster.located(report.reporter), " can't go on: ", report.why.message());
    return Failure{absl::Status(code_for_others(report.why), told), report.reporter, false, report.why};
  }
  const uint32_t accused = roster.seat_of_member(report.member);
  if (roster.is_summer(accused)) {
    return judge_unreachable_summer(accused, report.epoch, describe(report, roster), roster);
  }
  if (roster[accused].state == Seat::State::kLeft) {
    return Failure{absl::UnavailableError(deadlocks.describe_early_leave(accused, report.reporter)), accused, true};
  }
  return Loss{accused, describe(report, roster)};
}

Finding judge_unreachable_summer(uint32_t seat, uint32_t epoch, std::string why, const Roster& roster) {
  const uint32_t since = roster[seat].since;
  if (epoch > 0 && (since == 0 || since > epoch)) {
    GLN_RARE("coordinator: a rank can't reach a summer that another one has replaced");
    return {};
  }
  return Loss{seat, std::move(why)};
}

}  // namespace gleaner::coordinator
