#include "common/member/joining.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

using control::Welcome;

// With this delay the coordinator fails the job first, and its error names the missing members.
constexpr absl::Duration kGrace = absl::Seconds(3);

// Returns whether two Welcomes give a member the same place in the same job. The number of summers in a Welcome is
// preliminary, since plans have the final one. The session and the term belong to the coordinator, not to the place.
bool is_same_place(const Welcome& before, const Welcome& after) {
  const bool same_summers = before.summers == after.summers;
  return (same_summers || !GLN_MUTATION("a repeated welcome replaces what was prepared")) &&
         before.member == after.member && before.workers == after.workers && before.local_ranks == after.local_ranks &&
         before.elastic == after.elastic && before.secret == after.secret && before.deadline == after.deadline;
}

}  // namespace

void Joining::connect(absl::Duration now) {
  attempts_.begin(now);
  has_sent_join_ = false;
}

void Joining::retry_later(bool has_begun, bool leaves, absl::Duration now) {
  has_asked_ = has_asked_ || has_sent_join_;
  has_sent_join_ = false;
  attempts_.retry_later(has_begun, leaves, now);
}

Joining::Step Joining::next_step(absl::Duration now) {
  if (attempts_.is_due(now)) return Step::kConnect;
  if (!attempts_.has_timed_out(last_heard_, now)) return Step::kWait;
  last_failure_ =
      absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(terms_.pace.attempt)));
  return Step::kTimedOut;
}

bool Joining::on_challenged(absl::Duration now) {
  if (has_sent_join_) return false;
  last_heard_ = now;
  has_sent_join_ = true;
  return true;
}

std::optional<control::Resume> Joining::resume(const FollowedPlans& plans) const {
  if (session_.empty() || (!plans.has_begun() && plans.prepared() == nullptr)) return std::nullopt;
  control::Resume resume;
  resume.session = session_;
  resume.member = welcome_->member;
  resume.term = term_;
  resume.prepared = plans.heard_epoch();
  resume.committed = plans.committed_epoch();
  if (plans.has_begun()) resume.plan_digest = proto::digest(*plans.committed());
  return resume;
}

Joining::Place Joining::on_welcome(const Welcome& welcome, bool has_begun, absl::Duration now) {
  last_heard_ = now;
  if (has_begun && (welcome.session != session_ || welcome.member != welcome_->member)) return Place::kAnotherJob;
  attempts_.reset_pause();
  last_failure_ = absl::OkStatus();
  session_ = welcome.session;
  term_ = std::max(term_, welcome.term);
  if (has_begun || (welcome_.has_value() && is_same_place(*welcome_, welcome))) return Place::kUnchanged;
  welcome_ = welcome;
  return Place::kNew;
}

// Returns whether a member that was refused with this status may be admitted later.
bool Joining::may_be_admitted_later(const absl::Status& status) const {
  // If an earlier connection broke, the coordinator may not have noticed that yet. The member that has joined already
  // is then this member itself.
  if (absl::IsAlreadyExists(status)) return has_asked_ && !GLN_MUTATION("a member gives up its own place");
  return status.ok() || absl::IsUnavailable(status) || absl::IsNotFound(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

Joining::Reaction Joining::on_attempt_failed(const absl::Status& status, bool has_begun) {
  last_failure_ = status.ok() ? absl::UnavailableError("it ended the stream") : status;
  if (has_begun) {
    if (absl::IsAborted(status) && terms_.is_summer) return Fail{status};  // the job went on without this summer
    // No coordinator at this address will ever take this member back.
    if (absl::IsFailedPrecondition(status)) return GiveUp{status};
    return Retry{};
  }
  if (absl::IsUnimplemented(status)) {
    return Fail{absl::FailedPreconditionError(absl::StrCat(
        "the server at ", terms_.coordinator, " is not a coordinator of gleaner (", status.message(), ")"))};
  }
  const bool answered = has_sent_join_ || absl::IsFailedPrecondition(status);
  if (!may_be_admitted_later(status) && answered) return Fail{status};
  return Retry{};
}

Joining::Reaction Joining::on_lost(const absl::Status& why, bool has_begun, bool may_be_in_force) {
  last_failure_ = why;
  if (!has_begun && session_.empty() && !may_be_in_force) {
    return Fail{absl::UnavailableError(absl::StrCat("the coordinator at ", terms_.coordinator,
                                                    " was lost before the job had begun: ", why.message()))};
  }
  if (session_.empty()) return GiveUp{why};
  return Retry{};
}

absl::Status Joining::check_admission(bool has_begun, absl::Duration now) const {
  if (has_begun || now - started_ <= terms_.timeout) return absl::OkStatus();
  const std::string& where = terms_.coordinator;
  const std::string last = last_failure_.ok() ? "no answer" : std::string(last_failure_.message());
  const std::string timeout = absl::FormatDuration(terms_.timeout);
  return absl::UnavailableError(
      welcome_.has_value()
          ? absl::StrCat("the coordinator at ", where, " was lost before the job had begun, and did not return: ", last)
      : has_sent_join_ ? absl::StrCat("the coordinator at ", where, " has not admitted this member within ", timeout,
                                      "; an elastic job admits workers when the present workers commit their state")
                       : absl::StrCat("can't reach the coordinator at ", where, " within ", timeout, ": ", last,
                                      "; is it running there, and is the address right (GLEANER_COORDINATOR, "
                                      "--coordinator)?"));
}

absl::Status Joining::check_start(absl::Duration now) const {
  if (now - started_ <= terms_.timeout + kGrace) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("the job did not begin within ", absl::FormatDuration(terms_.timeout + kGrace),
                   "; the coordinator at ", terms_.coordinator, " logs which members are missing"));
}

absl::Status Joining::check_silence(absl::Duration now) const {
  if (now - last_heard_ <= welcome_->deadline) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("it has sent no message for ", absl::FormatDuration(welcome_->deadline)));
}

}  // namespace gleaner::member
