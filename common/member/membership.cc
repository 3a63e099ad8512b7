#include "common/member/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"

namespace gleaner::member {
namespace {

// With this delay the coordinator fails the job first, and its error names the missing members.
constexpr absl::Duration kGrace = absl::Seconds(3);

}  // namespace

void Membership::note(Note::Level level, absl::string_view text, absl::string_view reason) {
  act(Note{level, std::string(text), std::string(reason)});
}

void Membership::begin(absl::Duration now) {
  started_ = last_heard_ = last_sent_ = last_tick_ = now;
  connect(now);
}

void Membership::declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                         absl::Duration now) {
  unplanned_.add(tensors, operations, now);
  fail_if_unplannable();
  // A member that is not admitted yet declares all unplanned tensors in on_admitted().
  if (is_admitted() && !tensors.empty()) send_declared(tensors, unplanned_.take_unsent_operations(), now);
}

void Membership::acknowledge(uint32_t epoch, absl::Duration now) {
  // A coordinator that returns sends the plan again, so this member need not keep an acknowledgement for it.
  if (is_admitted()) send(Acknowledgement{epoch}, now);
}

void Membership::refuse(uint32_t epoch, const absl::Status& why, absl::Duration now) {
  if (is_admitted()) send(Refusal{epoch, why}, now);
}

void Membership::report(Report report) {
  last_report_ = report;
  report_ = std::move(report);
}

void Membership::begun(const std::string& tensor, uint64_t push_pulls, absl::Duration now) {
  if (is_admitted()) send(Begun{tensor, push_pulls}, now);  // another coordinator sends its own Inquire
}

void Membership::fault(uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now) {
  send(Fault{member, epoch, why}, now);
}

void Membership::leave(const absl::Status& status, bool again, absl::Duration timeout, absl::Duration now) {
  leave_request_ = LeaveRequest{status, again, now, timeout};
  if (phase_ == Phase::kAdmitted || phase_ == Phase::kRegroup) return send_leave(now);
  if (phase_ == Phase::kCoordinatorGone || phase_ == Phase::kOver || !has_begun()) return end(absl::OkStatus());
  attempts_.retry_now(now);
}

void Membership::send(control::MemberMessage message, absl::Duration now) {
  if (phase_ == Phase::kConnecting || phase_ == Phase::kJoining) return held_back_.push_back(std::move(message));
  last_sent_ = now;
  act(std::move(message));
}

void Membership::send_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                               absl::Duration now) {
  if (!tensors.empty() || !operations.empty()) send(Declare{tensors, operations}, now);
}

void Membership::send_leave(absl::Duration now) {
  if (report_.has_value()) send(*std::exchange(report_, std::nullopt), now);
  send(Leave{leave_request_->status, plans_.committed_epoch(), leave_request_->again}, now);
}

// Returns whether a worker has waited long enough for the answer to its Leave, and leaves without the answer. It waits
// longer for a coordinator that is connected: the coordinator may only be slow, and would count a worker that
// disappears as lost.
bool Membership::leaves_unanswered(absl::Duration now) const {
  if (!is_leaving() || terms_.is_summer) return false;
  const bool is_away = phase_ == Phase::kConnecting || phase_ == Phase::kJoining;
  if (!is_away) return now - leave_request_->since > welcome_->deadline;
  const absl::Duration since = leave_request_->since;
  return now - std::max(since, away_since_.value_or(since)) > leave_request_->timeout;
}

void Membership::on_message(const control::CoordinatorMessage& message, absl::Duration now) {
  std::visit([&](const auto& each) { handle(each, now); }, message);
}

void Membership::handle(const control::Recall&, absl::Duration now) {
  if (is_admitted() && has_begun()) send(Recalled{plans_.committed()}, now);
}

void Membership::handle(const Prepare& prepare, absl::Duration now) {
  if (!is_admitted()) return;
  const uint32_t epoch = prepare.plan->epoch;
  if (has_begun() && epoch == plans_.committed_epoch()) return send(Acknowledgement{epoch}, now);
  plans_.prepare(prepare.plan);
  if (follows_plans()) tell(prepare);
}

void Membership::handle(const Commit& message, absl::Duration) {
  const uint32_t epoch = message.epoch;
  if (!is_admitted() || (has_begun() && plans_.committed_epoch() == epoch)) return;
  if (plans_.prepared() == nullptr || plans_.prepared_epoch() != epoch) {
    return fail(absl::InternalError(
        absl::StrCat("the coordinator commits a plan of epoch ", epoch, " that it did not prepare")));
  }
  commit();
}

void Membership::on_owner_follows(uint32_t epoch, bool by_rank) {
  plans_.on_owner_follows(epoch, by_rank);
  follow_others();
}

void Membership::follow_others() {
  const bool is_away =
      phase_ == Phase::kConnecting;  // in other phases the coordinator knows which plan this member follows
  if (!has_begun() || (!is_away && phase_ != Phase::kCoordinatorGone)) return;
  if (!plans_.others_follow_prepared(is_away) || GLN_MUTATION("a member without a coordinator goes by nobody")) return;
  GLN_RARE("member: a plan is committed that others follow");
  note(Note::Level::kInfo, "owners follow the prepared plan; this member commits it without the coordinator", "");
  commit();
}

void Membership::commit() {
  plans_.commit();
  unplanned_.on_commit(*plans_.committed());
  if (follows_plans()) tell(Commit{plans_.committed_epoch()});
  if (terms_.is_summer || !is_leaving() || !leave_request_->status.ok()) return;
  leave_request_.reset();
  act(Stays{});
}

void Membership::handle(const Failed& failed, absl::Duration) {
  if (is_admitted()) fail(failed.status);
}

void Membership::handle(const Regroup& regroup, absl::Duration) {
  if (!is_admitted()) return;
  if (terms_.is_summer) return fail(regroup.why);
  // A member that is already leaving waits for the answer to its Leave.
  phase_ = Phase::kRegroup;
  if (!is_leaving()) tell(regroup);
}

void Membership::handle(const Finished& finished, absl::Duration) {
  if (!is_admitted()) return;
  end(absl::OkStatus());
  if (!is_leaving()) tell(finished);
}

void Membership::handle(const Goodbye&, absl::Duration) {
  if (phase_ == Phase::kRegroup) return end(absl::OkStatus());
  if (!is_admitted()) return;
  end(absl::OkStatus());
  if (!is_leaving() || terms_.is_summer) tell(Finished{});
}

void Membership::fail_if_unplannable() {
  if (phase_ != Phase::kCoordinatorGone || unplanned_.empty()) return;
  fail(absl::UnavailableError(absl::StrCat(
      "the coordinator at ", terms_.coordinator, " is lost and can't be replaced, and no plan has tensor '",
      unplanned_.tensors()[0].name, "'", last_failure_.ok() ? "" : ": ", last_failure_.message())));
}

void Membership::on_tick(bool is_idle, absl::Duration now) {
  // If this process was paused, messages that came meanwhile are still unread, so the pause does not count as silence.
  const absl::Duration pause = now - std::exchange(last_tick_, now);
  if (pause > tick_interval() * 2) {
    last_heard_ += pause;
    if (is_leaving()) leave_request_->since += pause;
  }
  if (leaves_unanswered(now)) {
    note(Note::Level::kWarning, "this member leaves without an answer from the coordinator", last_failure_.message());
    return end(absl::OkStatus());
  }
  if (phase_ == Phase::kConnecting || phase_ == Phase::kJoining) return tick_connecting(now);
  if (!is_admitted()) return;
  if (!has_begun() && now - started_ > terms_.timeout + kGrace) {
    return fail(absl::DeadlineExceededError(
        absl::StrCat("the job did not begin within ", absl::FormatDuration(terms_.timeout + kGrace),
                     "; the coordinator at ", terms_.coordinator, " logs which members are missing")));
  }
  if (now - last_heard_ > welcome_->deadline) {
    const std::string silence = absl::FormatDuration(welcome_->deadline);
    return on_lost(absl::UnavailableError(absl::StrCat("it has sent no message for ", silence)), now);
  }
  if (!is_idle) return;
  send_declared({}, unplanned_.take_unsent_operations(), now);
  if (now - last_sent_ < terms_.pace.heartbeat) return;
  if (report_.has_value()) return send(*std::exchange(report_, std::nullopt), now);
  send(Heartbeat{}, now);
}

absl::Duration Membership::tick_interval() const {
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      return terms_.pace.tick_away;
    case Phase::kAdmitted:
      return terms_.pace.heartbeat / 2;
    case Phase::kRegroup:
      return is_leaving() ? terms_.pace.tick_away : absl::InfiniteDuration();
    case Phase::kCoordinatorGone:
    case Phase::kOver:
      break;
  }
  return absl::InfiniteDuration();
}

void Membership::fail(const absl::Status& status) {
  const bool silent = is_leaving() || phase_ == Phase::kOver;
  end(status);
  if (!silent) tell(Failed{status});
}

void Membership::end(const absl::Status& how) {
  phase_ = Phase::kOver;
  disconnect();
  held_back_.clear();
  act(Left{how});
}

}  // namespace gleaner::member
