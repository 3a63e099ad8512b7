#include "common/member/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"

namespace gleaner::member {
namespace {

// The coordinator, which knows who is missing, gives up first.
constexpr absl::Duration kGrace = absl::Seconds(3);

}  // namespace

void Membership::note(Note::Level level, absl::string_view text, absl::string_view reason) {
  act(Note{level, std::string(text), std::string(reason)});
}

void Membership::begin(absl::Duration now) {
  started_ = last_heard_ = last_said_ = last_tick_ = now;
  connect(now);
}

void Membership::declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                         absl::Duration now) {
  note_declared(tensors, operations, now);
  // A member that the coordinator has not let in says all that no plan has when it comes in.
  if (is_in() && !tensors.empty()) say_declared(tensors, std::exchange(unsaid_operations_, {}), now);
}

void Membership::acknowledge(uint32_t epoch, absl::Duration now) {
  // A coordinator that comes back asks once more.
  if (is_in()) say(Acknowledgement{epoch}, now);
}

void Membership::refuse(uint32_t epoch, const absl::Status& why, absl::Duration now) {
  if (is_in()) say(Refusal{epoch, why}, now);
}

void Membership::report(Report report) {
  last_report_ = report;
  report_ = std::move(report);
}

void Membership::begun(const std::string& tensor, uint64_t push_pulls, absl::Duration now) {
  if (is_in()) say(Begun{tensor, push_pulls}, now);  // another coordinator asks for itself
}

void Membership::fault(uint32_t member, const absl::Status& why, absl::Duration now) {
  say(Accusation{member, why}, now);
}

void Membership::leave(const absl::Status& status, bool again, absl::Duration timeout, absl::Duration now) {
  leaving_ = true;
  again_ = again;
  leaving_since_ = now;
  leave_timeout_ = timeout;
  leave_status_ = status;
  if (phase_ == Phase::kIn || phase_ == Phase::kRegroup) return say_leave(now);
  if (phase_ == Phase::kAlone || phase_ == Phase::kOver || !has_begun()) return over(absl::OkStatus());
  pause_ = absl::ZeroDuration();
  retry_at_ = now;
}

void Membership::say(Saying what, absl::Duration now) {
  if (phase_ == Phase::kConnecting || phase_ == Phase::kJoining) return held_back_.push_back(std::move(what));
  last_said_ = now;
  act(std::move(what));
}

void Membership::say_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                              absl::Duration now) {
  if (!tensors.empty() || !operations.empty()) say(Declaration{tensors, operations}, now);
}

void Membership::say_leave(absl::Duration now) {
  if (report_.has_value()) say(*std::exchange(report_, std::nullopt), now);
  say(Leave{leave_status_, has_begun() ? committed_->epoch : 0, again_}, now);
}

// Whether a worker leaves though the coordinator has not heard of it. One that is connected may only be slow, and would
// take a worker that is suddenly gone for lost.
bool Membership::leaves_unheard(absl::Duration now) const {
  if (!leaving_ || terms_.is_summer) return false;
  const bool is_away = phase_ == Phase::kConnecting || phase_ == Phase::kJoining;
  if (!is_away) return now - leaving_since_ > told_->deadline;
  return now - std::max(leaving_since_, away_since_.value_or(leaving_since_)) > leave_timeout_;
}

// --- what the coordinator says

void Membership::on_recalled(absl::Duration now) {
  if (is_in() && has_begun()) say(Recalled{committed_}, now);
}

void Membership::on_prepare(std::shared_ptr<const plan::Plan> plan, absl::Duration now) {
  if (!is_in()) return;
  if (has_begun() && plan->epoch == committed_->epoch) return say(Acknowledgement{plan->epoch}, now);
  prepared_ = std::move(plan);
  if (follows_plans()) act(Prepared{prepared_});
}

void Membership::on_commit(uint32_t epoch) {
  if (!is_in() || (has_begun() && committed_->epoch == epoch)) return;
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return fail(absl::InternalError(
        absl::StrCat("the coordinator commits a plan of epoch ", epoch, " that it did not prepare")));
  }
  commit();
}

void Membership::saw(uint32_t epoch, bool by_rank) {
  seen_ = std::max(seen_, epoch);
  if (by_rank) seen_by_rank_ = std::max(seen_by_rank_, epoch);
  follow_others();
}

void Membership::follow_others() {
  const bool is_away = phase_ == Phase::kConnecting;  // who is joining has said what it follows
  if (!has_begun() || prepared_ == nullptr || (!is_away && phase_ != Phase::kAlone)) return;
  const uint32_t in_force = is_away ? seen_by_rank_ : seen_;
  if (in_force != prepared_->epoch || GLN_MUTATION("a member without a coordinator goes by nobody")) return;
  GLN_RARE("member: a plan is committed that others follow");
  note(Note::Level::kInfo, "others follow the plan that is prepared, and so does this member", "");
  commit();
}

void Membership::commit() {
  const uint32_t epoch = prepared_->epoch;
  committed_ = std::exchange(prepared_, nullptr);
  for (const plan::Tensor& tensor : committed_->tensors) {
    if (const auto found = declared_.find(tensor.name); found != declared_.end()) found->second = true;
  }
  std::erase_if(unplanned_, [this](const plan::Tensor& tensor) { return declared_.at(tensor.name); });
  std::erase_if(unplanned_operations_, [this](const plan::Operation& each) { return is_planned(each.tensor); });
  std::erase_if(unsaid_operations_, [this](const plan::Operation& each) { return is_planned(each.tensor); });
  if (follows_plans()) act(Committed{epoch});
  if (terms_.is_summer || !leave_status_.ok() || !std::exchange(leaving_, false)) return;
  act(Stays{});
}

void Membership::on_failed(const absl::Status& status, bool again) {
  if (!is_in()) return;
  if (!again || terms_.is_summer) return fail(status);
  // Who leaves already waits for the coordinator to have heard it.
  phase_ = Phase::kRegroup;
  if (!leaving_) act(Regroup{status});
}

void Membership::on_finished() {
  if (!is_in()) return;
  over(absl::OkStatus());
  if (!leaving_) act(Finished{});
}

void Membership::on_goodbye() {
  if (phase_ == Phase::kRegroup) return over(absl::OkStatus());
  if (!is_in()) return;
  over(absl::OkStatus());
  if (!leaving_ || terms_.is_summer) act(Finished{});
}

void Membership::note_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                               absl::Duration now) {
  if (unplanned_.empty()) unplanned_since_ = now;
  for (const plan::Tensor& tensor : tensors) {
    if (declared_.try_emplace(tensor.name, false).second) unplanned_.push_back(tensor);
  }
  // Owners compare the operations of tensors that a plan has.
  for (const plan::Operation& each : operations) {
    if (is_planned(each.tensor)) continue;
    unplanned_operations_.push_back(each);
    unsaid_operations_.push_back(each);
  }
  check_alone();
}

bool Membership::is_planned(const std::string& tensor) const {
  const auto found = declared_.find(tensor);
  return found == declared_.end() || found->second;
}

void Membership::check_alone() {
  if (phase_ != Phase::kAlone || unplanned_.empty()) return;
  fail(absl::UnavailableError(absl::StrCat("the coordinator at ", terms_.coordinator,
                                           " is lost, and nobody else can plan tensor '", unplanned_[0].name, "'",
                                           last_failure_.ok() ? "" : ": ", last_failure_.message())));
}

void Membership::on_tick(bool is_idle, absl::Duration now) {
  // While this process stood still it did not listen: what the coordinator said meanwhile is still to be read.
  const absl::Duration pause = now - std::exchange(last_tick_, now);
  if (pause > patience() * 2) {
    last_heard_ += pause;
    leaving_since_ += pause;
  }
  if (leaves_unheard(now)) {
    note(Note::Level::kWarning, "leaves without the coordinator's having heard of it", last_failure_.message());
    return over(absl::OkStatus());
  }
  if (phase_ == Phase::kConnecting || phase_ == Phase::kJoining) return tick_connecting(now);
  if (!is_in()) return;
  if (!has_begun() && now - started_ > terms_.timeout + kGrace) {
    return fail(absl::DeadlineExceededError(
        absl::StrCat("the job did not begin within ", absl::FormatDuration(terms_.timeout + kGrace),
                     "; the coordinator at ", terms_.coordinator, " knows who is missing")));
  }
  if (now - last_heard_ > told_->deadline) {
    const std::string silence = absl::FormatDuration(told_->deadline);
    return on_lost(absl::UnavailableError(absl::StrCat("it has said nothing for ", silence)), now);
  }
  if (!is_idle) return;
  say_declared({}, std::exchange(unsaid_operations_, {}), now);
  if (now - last_said_ < terms_.pace.heartbeat) return;
  if (report_.has_value()) return say(*std::exchange(report_, std::nullopt), now);
  say(Heartbeat{}, now);
}

absl::Duration Membership::patience() const {
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      return terms_.pace.look;
    case Phase::kIn:
      return terms_.pace.heartbeat / 2;
    case Phase::kRegroup:
      return leaving_ ? terms_.pace.look : absl::InfiniteDuration();
    case Phase::kAlone:
    case Phase::kOver:
      break;
  }
  return absl::InfiniteDuration();
}

void Membership::fail(const absl::Status& status) {
  const bool silent = leaving_ || phase_ == Phase::kOver;
  over(status);
  if (!silent) act(Failed{status});
}

void Membership::over(const absl::Status& how) {
  phase_ = Phase::kOver;
  disconnect();
  held_back_.clear();
  act(Left{how});
}

}  // namespace gleaner::member
