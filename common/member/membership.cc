#include "common/member/membership.h"

#include "common/base/faults.h"

namespace gleaner::member {

Membership::Membership(const Terms& terms, std::function<double()> random)
    : terms_(terms),
      joining_({terms.is_summer, terms.coordinator, terms.timeout, terms.pace}, std::move(random)),
      unplanned_(terms.coordinator, terms.plan_timeout),
      leaving_(terms.is_summer),
      outbox_(terms.pace.heartbeat) {}

void Membership::note(Note::Level level, absl::string_view text, absl::string_view reason) {
  act(Note{level, std::string(text), std::string(reason)});
}

void Membership::begin(absl::Duration now) {
  last_tick_ = now;
  joining_.begin(now);
  outbox_.on_sent(now);
  connect(now);
}

void Membership::declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                         absl::Duration now) {
  unplanned_.add(tensors, operations, now);
  fail_if_unplannable();
  // A member that is not admitted yet declares all unplanned tensors once it is. Operations alone wait for on_tick().
  if (is_admitted() && !tensors.empty()) send(unplanned_.declare(tensors), now);
}

void Membership::acknowledge(uint32_t epoch, absl::Duration now) {
  // A coordinator that returns sends the plan again, so this member need not keep an acknowledgement for it.
  if (is_admitted()) send(Acknowledgement{epoch}, now);
}

void Membership::refuse(uint32_t epoch, const absl::Status& why, absl::Duration now) {
  if (is_admitted()) send(Refusal{epoch, why}, now);
}

void Membership::report_now(Report report, absl::Duration now) {
  outbox_.report(std::move(report));
  if (is_admitted()) send(*outbox_.take_report(), now);
}

void Membership::begun(const std::string& tensor, uint64_t push_pulls, absl::Duration now) {
  if (is_admitted()) send(Begun{tensor, push_pulls}, now);  // another coordinator sends its own Inquire
}

void Membership::push_pulls(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now) {
  if (is_admitted()) send(PushPulls{epoch, std::move(counts)}, now);  // another coordinator asks again
}

void Membership::fault(uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now) {
  send(Fault{member, epoch, why}, now);
}

void Membership::leave(const absl::Status& status, bool again, absl::Duration timeout, absl::Duration now) {
  leaving_.request(status, again, timeout, now);
  if (phase_ == Phase::kAdmitted || phase_ == Phase::kRegroup) return send_leave(now);
  if (phase_ == Phase::kCoordinatorGone || phase_ == Phase::kOver || !has_begun()) return end(absl::OkStatus());
  joining_.retry_now(now);
}

void Membership::send(control::MemberMessage message, absl::Duration now) {
  if (phase_ == Phase::kJoining) return outbox_.hold_back(std::move(message));
  outbox_.on_sent(now);
  act(std::move(message));
}

void Membership::send_leave(absl::Duration now) {
  if (auto report = outbox_.take_report(); report.has_value()) send(*std::move(report), now);
  send(leaving_.message(plans_.committed_epoch()), now);
}

void Membership::connect(absl::Duration now) {
  joining_.connect(now);
  act(Connect{});
}

void Membership::disconnect() {
  if (joining_.disconnect()) act(Disconnect{});
}

void Membership::retry_later(absl::Duration now) {
  phase_ = Phase::kJoining;
  joining_.retry_later(has_begun(), leaving_.is_requested(), now);
  follow_others();
}

void Membership::on_challenged(absl::Duration now) {
  if (phase_ == Phase::kJoining && joining_.on_challenged(now)) act(Introduce{joining_.resume(plans_)});
}

// Before the job begins, Welcome may come again, with another member number or session.
bool Membership::expects_welcome() const {
  return (phase_ == Phase::kJoining && joining_.has_sent_join()) || (is_admitted() && !has_begun());
}

void Membership::on_welcome(const Welcome& welcome, absl::Duration now) {
  if (!expects_welcome()) return;
  const Joining::Place place = joining_.on_welcome(welcome, has_begun(), now);
  if (place == Joining::Place::kAnotherJob) {
    return give_up_coordinator(absl::FailedPreconditionError("the coordinator has begun another job"));
  }
  phase_ = Phase::kAdmitted;
  for (control::MemberMessage& message : outbox_.take_held_back()) send(std::move(message), now);
  std::optional<Declare> declaration = unplanned_.declare_all();
  if (declaration.has_value() && !GLN_MUTATION("a member does not say again what it declared")) {
    send(*std::move(declaration), now);
  }
  if (leaving_.is_requested() && !GLN_MUTATION("a member does not say again that it leaves")) send_leave(now);
  if (has_begun()) {
    outbox_.repeat_report();
    note(Note::Level::kInfo, "the coordinator is back", "");
    joining_.set_back();
    return tell(CoordinatorFound{});
  }
  if (place == Joining::Place::kUnchanged) return;
  plans_.forget_prepared();
  if (!leaving_.is_requested()) tell(*joining_.welcome());
}

void Membership::on_closed(const absl::Status& status, absl::Duration now) {
  static_cast<void>(joining_.disconnect());  // there is nothing to drop any more
  switch (phase_) {
    case Phase::kJoining:
      return on_attempt_failed(status, now);
    case Phase::kAdmitted:
      if (absl::IsAborted(status) && terms_.is_summer) return fail(status);  // the job goes on without this summer
      return on_lost(absl::UnavailableError(status.ok() ? "it ended the stream" : status.message()), now);
    case Phase::kRegroup:
      return end(absl::OkStatus());
    case Phase::kCoordinatorGone:
    case Phase::kOver:
      return;
  }
}

void Membership::on_attempt_failed(const absl::Status& status, absl::Duration now) {
  if (phase_ == Phase::kCoordinatorGone || phase_ == Phase::kOver) return;
  const Joining::Reaction reaction = joining_.on_attempt_failed(status, has_begun());
  if (has_begun() && std::holds_alternative<Joining::Retry>(reaction)) {
    note(Note::Level::kDebug, "the coordinator is still out of reach", joining_.last_failure().message());
  }
  react(reaction, now);
}

void Membership::on_lost(const absl::Status& why, absl::Duration now) {
  // Others may follow the plan that this summer has only prepared, and then they need the summer.
  const bool may_be_in_force = terms_.is_summer && plans_.prepared_epoch() > 1;
  const Joining::Reaction reaction = joining_.on_lost(why, has_begun(), may_be_in_force);
  react(reaction, now);
  if (!std::holds_alternative<Joining::Retry>(reaction) || !has_begun()) return;
  joining_.set_away(now);
  note(Note::Level::kWarning, "the coordinator is out of reach; the job goes on, and this member tries to reconnect",
       why.message());
  tell(CoordinatorLost{});
}

void Membership::react(const Joining::Reaction& reaction, absl::Duration now) {
  if (const auto* failed = std::get_if<Joining::Fail>(&reaction)) return fail(failed->status);
  if (const auto* gone = std::get_if<Joining::GiveUp>(&reaction)) return give_up_coordinator(gone->why);
  disconnect();
  retry_later(now);
}

void Membership::give_up_coordinator(const absl::Status& why) {
  phase_ = Phase::kCoordinatorGone;
  joining_.on_given_up(why);
  disconnect();
  note(Note::Level::kWarning, "the coordinator is lost and can't be replaced; the job goes on without a coordinator",
       why.message());
  if (!joining_.away_since().has_value()) tell(CoordinatorLost{});
  tell(CoordinatorGone{why});
  follow_others();
  if (leaving_.is_requested()) end(absl::OkStatus());
  fail_if_unplannable();
}

void Membership::on_message(const control::CoordinatorMessage& message, absl::Duration now) {
  std::visit([&](const auto& each) { handle(each, now); }, message);
}

void Membership::handle(const control::Recall&, absl::Duration now) {
  if (is_admitted() && has_begun()) send(Recalled{plans_.committed()}, now);
}

void Membership::handle(const Prepare& prepare, absl::Duration now) {
  if (!is_admitted()) return;
  if (!plans_.prepare(prepare.plan)) return send(Acknowledgement{prepare.plan->epoch}, now);
  if (leaving_.follows_plans()) tell(prepare);
}

void Membership::handle(const Commit& commit, absl::Duration) {
  if (!is_admitted()) return;
  const absl::StatusOr<bool> is_new = plans_.commit(commit.epoch);
  if (!is_new.ok()) return fail(is_new.status());
  if (*is_new) on_committed();
}

void Membership::handle(const Withdraw& withdraw, absl::Duration) {
  if (!is_admitted() || plans_.prepared() == nullptr || plans_.prepared_epoch() != withdraw.epoch) return;
  plans_.forget_prepared();
  if (leaving_.follows_plans()) tell(withdraw);
}

void Membership::handle(const Failed& failed, absl::Duration) {
  if (is_admitted()) fail(failed.status);
}

void Membership::handle(const Regroup& regroup, absl::Duration) {
  if (!is_admitted()) return;
  if (terms_.is_summer) return fail(regroup.why);
  // A member that is already leaving waits for the answer to its Leave.
  phase_ = Phase::kRegroup;
  if (!leaving_.is_requested()) tell(regroup);
}

void Membership::handle(const Finished& finished, absl::Duration) {
  if (!is_admitted()) return;
  end(absl::OkStatus());
  if (!leaving_.is_requested()) tell(finished);
}

void Membership::handle(const Goodbye&, absl::Duration) {
  if (phase_ == Phase::kRegroup) return end(absl::OkStatus());
  if (!is_admitted()) return;
  end(absl::OkStatus());
  if (leaving_.is_told_of_goodbye()) tell(Finished{});
}

void Membership::on_owner_follows(uint32_t epoch, bool by_rank) {
  plans_.on_owner_follows(epoch, by_rank);
  follow_others();
}

void Membership::follow_others() {
  // A coordinator that was sent Join knows which plan this member follows.
  const bool may_return = phase_ == Phase::kJoining && !joining_.has_sent_join();
  if (!has_begun() || (!may_return && phase_ != Phase::kCoordinatorGone)) return;
  if (!plans_.commit_as_others(may_return)) return;
  note(Note::Level::kInfo, "owners follow the prepared plan; this member commits it without the coordinator", "");
  on_committed();
}

void Membership::on_committed() {
  unplanned_.on_commit(*plans_.committed());
  if (leaving_.follows_plans()) tell(Commit{plans_.committed_epoch()});
  if (leaving_.on_commit()) act(Stays{});
}

void Membership::on_tick(bool is_idle, absl::Duration now) {
  const absl::Duration pause = now - std::exchange(last_tick_, now);
  if (pause > tick_interval() * 2) {  // this process was paused
    joining_.on_pause(pause);
    leaving_.on_pause(pause);
  }
  if (leaves_unanswered(now)) {
    note(Note::Level::kWarning, "this member leaves without an answer from the coordinator",
         joining_.last_failure().message());
    return end(absl::OkStatus());
  }
  if (phase_ == Phase::kJoining) return tick_joining(now);
  if (is_admitted()) tick_admitted(is_idle, now);
}

bool Membership::leaves_unanswered(absl::Duration now) const {
  if (phase_ == Phase::kJoining) return leaving_.has_waited_for_lost(joining_.away_since(), now);
  return !is_over() && leaving_.has_waited_for_connected(joining_.welcome()->deadline, now);
}

void Membership::tick_joining(absl::Duration now) {
  if (fail_if(joining_.check_admission(has_begun(), now))) return;
  if (has_begun() && fail_if(unplanned_.check_wait(joining_.away_since(), joining_.last_failure(), now))) return;
  switch (joining_.next_step(now)) {
    case Joining::Step::kWait:
      return;
    case Joining::Step::kConnect:
      return connect(now);
    case Joining::Step::kTimedOut:
      disconnect();
      return retry_later(now);
  }
}

void Membership::tick_admitted(bool is_idle, absl::Duration now) {
  if (!has_begun() && fail_if(joining_.check_start(now))) return;
  if (const absl::Status silence = joining_.check_silence(now); !silence.ok()) return on_lost(silence, now);
  if (!is_idle) return;
  if (auto declaration = unplanned_.declare_operations(); declaration.has_value()) send(*std::move(declaration), now);
  if (auto message = outbox_.take_due(now); message.has_value()) send(*std::move(message), now);
}

absl::Duration Membership::tick_interval() const {
  switch (phase_) {
    case Phase::kJoining:
      return terms_.pace.tick_away;
    case Phase::kAdmitted:
      return terms_.pace.heartbeat / 2;
    case Phase::kRegroup:
      return leaving_.is_requested() ? terms_.pace.tick_away : absl::InfiniteDuration();
    case Phase::kCoordinatorGone:
    case Phase::kOver:
      break;
  }
  return absl::InfiniteDuration();
}

void Membership::fail_if_unplannable() {
  if (phase_ == Phase::kCoordinatorGone) fail_if(unplanned_.check_without_coordinator(joining_.last_failure()));
}

bool Membership::fail_if(const absl::Status& status) {
  if (!status.ok()) fail(status);
  return !status.ok();
}

void Membership::fail(const absl::Status& status) {
  const bool silent = leaving_.is_requested() || is_over();
  end(status);
  if (!silent) tell(Failed{status});
}

void Membership::end(const absl::Status& how) {
  phase_ = Phase::kOver;
  disconnect();
  outbox_.forget_held_back();
  act(Left{how});
}

}  // namespace gleaner::member
