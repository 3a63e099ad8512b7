#include "operator/coordinator/core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);

}  // namespace

Core::Core(const Options& options, absl::Duration now, Origin origin)
    : options_(options),
      origin_(std::move(origin)),
      started_(now),
      last_tick_(now),
      last_heartbeat_(now),
      roster_(options),
      declarations_(&roster_),
      session_(origin_.session),
      reports_(roster_.ranks()) {}

std::optional<uint32_t> Core::heard(StreamId stream, absl::Duration now) {
  const std::optional<uint32_t> seat = roster_.seat_of(stream);
  if (!seat.has_value() || outcome_.has_value() || roster_[*seat].state != Seat::State::kPresent) return std::nullopt;
  roster_[*seat].last_heard = now;
  return seat;
}

void Core::tell(uint32_t seat, Message message, Actions& actions) const {
  if (roster_[seat].state == Seat::State::kPresent) actions.sends.push_back({roster_[seat].stream, std::move(message)});
}

void Core::tell_everyone(const Message& message, Actions& actions) {
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) tell(seat, message, actions);
}

void Core::fail(const absl::Status& status, std::optional<uint32_t> culprit, Actions& actions) {
  if (outcome_.has_value()) return;
  outcome_ = status;
  culprit_ = culprit;
  tell_everyone(Failed{status}, actions);
}

void Core::lost(uint32_t seat, absl::string_view why, Actions& actions) {
  fail(absl::UnavailableError(absl::StrCat(roster_.located(seat), " is lost: ", why)), seat, actions);
}

void Core::stop(const absl::Status& why, Actions& actions) { fail(why, std::nullopt, actions); }

Phase Core::phase() const {
  if (outcome_.has_value()) return Phase::kEnded;
  if (recovering_) return Phase::kRecovering;
  return committed_->epoch == 0 ? Phase::kGathering : Phase::kRunning;
}

void Core::on_heartbeat(StreamId stream, absl::Duration now) { heard(stream, now); }

double Core::bandwidth_of(uint32_t member) const {
  const bool worker = member < options_.workers;
  const auto& list = worker ? options_.worker_bits_per_second : options_.summer_bits_per_second;
  const uint32_t seat = roster_.seat_of_member(member);
  if (const uint32_t index = roster_.index_of(seat); index < list.size()) return list[index];
  if (options_.bits_per_second > 0) return options_.bits_per_second;
  const double own = roster_[seat].identity.bits_per_second;
  return own > 0 ? own : kAssumedBitsPerSecond;
}

void Core::propose_first(absl::Duration now, Actions& actions) {
  plan::Fleet fleet;
  const uint32_t members = options_.workers + summers();
  for (uint32_t member = 0; member < members; ++member) {
    auto& side = member < options_.workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second;
    side.push_back(bandwidth_of(member));
  }
  auto plan = plan::make_plan(fleet, {}, {options_.partition_bytes});
  if (!plan.ok()) return fail(plan.status(), std::nullopt, actions);
  for (uint32_t member = 0; member < members; ++member) {
    plan->members[member].address = roster_[roster_.seat_of_member(member)].identity.address;
  }
  plan->local_ranks = options_.local_ranks;
  plan->epoch = highest_epoch_ + 1;
  plan->fence = plan->epoch;
  propose(*std::move(plan), now, actions);
}

void Core::propose_next(absl::Duration now, Actions& actions) {
  if (agreed_.empty() || proposed_ != nullptr || committed_->epoch == 0 || outcome_.has_value()) return;
  auto plan = plan::extend_plan(*committed_, std::exchange(agreed_, {}), {options_.partition_bytes});
  if (!plan.ok()) return fail(plan.status(), std::nullopt, actions);
  plan->epoch = highest_epoch_ + 1;
  plan->fence = committed_->fence;
  propose(*std::move(plan), now, actions);
}

void Core::propose(plan::Plan plan, absl::Duration now, Actions& actions) {
  proposed_ = std::make_shared<const plan::Plan>(std::move(plan));
  proposed_at_ = now;
  highest_epoch_ = proposed_->epoch;
  tell_everyone(Prepare{proposed_}, actions);
}

bool Core::is_awaited(uint32_t seat) const {
  return roster_[seat].state != Seat::State::kLeft && roster_[seat].acknowledged < proposed_->epoch;
}

// Goes on at the seat where it stopped last, which may still be awaited: a round of all seats only when nobody is.
bool Core::is_anybody_awaited() {
  for (uint32_t looked = 0; looked < roster_.size(); ++looked) {
    look_first_ %= roster_.size();
    if (is_awaited(look_first_)) return true;
    ++look_first_;
  }
  return false;
}

std::vector<uint32_t> Core::unacknowledged() const {
  std::vector<uint32_t> seats;
  for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
    if (is_awaited(seat)) seats.push_back(seat);
  }
  return seats;
}

void Core::on_acknowledged(StreamId stream, uint32_t epoch, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  if (proposed_ == nullptr || epoch != proposed_->epoch) {
    if (epoch <= highest_epoch_) return;  // said once more, or of a plan that another coordinator gave up
    return fail(absl::InternalError(absl::StrCat(roster_.located(*seat), " acknowledged the plan of epoch ", epoch,
                                                 ", which nobody proposed")),
                *seat, actions);
  }
  if (roster_[*seat].acknowledged == epoch) return;
  roster_[*seat].acknowledged = epoch;
  commit_if_acknowledged(now, actions);
}

void Core::commit_if_acknowledged(absl::Duration now, Actions& actions) {
  if (proposed_ == nullptr || outcome_.has_value() || is_anybody_awaited()) return;
  committed_ = std::exchange(proposed_, nullptr);
  tell_everyone(Commit{committed_->epoch}, actions);
  actions.notes.push_back(absl::StrCat("plan committed: epoch ", committed_->epoch, ", ", committed_->tensors.size(),
                                       " tensors in ", committed_->partitions.size(), " partitions"));
  propose_next(now, actions);
}

void Core::on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  fail({why.ok() ? absl::StatusCode::kUnknown : why.code(),
        absl::StrCat(roster_.located(*seat), " can't follow the plan of epoch ", epoch, ": ", why.message())},
       *seat, actions);
}

void Core::on_declared(StreamId stream, const std::vector<plan::Tensor>& tensors, absl::Duration now,
                       Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  if (roster_.is_summer(*seat)) {
    return fail(absl::InternalError(absl::StrCat(roster_.located(*seat), " declared tensors; only workers do")), *seat,
                actions);
  }
  if (recovering_) return declared_early_.push_back({*seat, tensors});
  declare(*seat, tensors, now, actions);
  propose_next(now, actions);
  check_declarations(now, actions);
}

void Core::declare(uint32_t seat, const std::vector<plan::Tensor>& tensors, absl::Duration now, Actions& actions) {
  const absl::Status status = declarations_.declare(seat, tensors, now);
  if (!status.ok()) return fail(status, seat, actions);
  for (plan::Tensor& tensor : declarations_.take_agreed()) agreed_.push_back(std::move(tensor));
}

void Core::on_report(StreamId stream, const Report& report, absl::Duration now) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (seat.has_value() && !roster_.is_summer(*seat)) reports_[*seat] = report;
}

void Core::on_fault(StreamId stream, uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  if (member >= options_.workers + summers()) {
    return fail(absl::UnavailableError(absl::StrCat(roster_.located(*seat), " can't go on: ", why.message())), *seat,
                actions);
  }
  const uint32_t accused = roster_.seat_of_member(member);
  lost(accused, absl::StrCat(roster_.name(*seat), " reports: ", why.message()), actions);
}

void Core::on_left(StreamId stream, const absl::Status& status, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  roster_.vacate(*seat, Seat::State::kLeft, now);
  actions.sends.push_back({stream, Goodbye{}});
  if (!status.ok()) {
    return fail(absl::UnavailableError(absl::StrCat(roster_.located(*seat), " left with an error: ", status.message())),
                *seat, actions);
  }
  if (roster_.is_summer(*seat) || !has_begun()) {
    return fail(absl::UnavailableError(absl::StrCat(roster_.located(*seat), " left before the job ",
                                                    has_begun() ? "was over" : "had begun")),
                *seat, actions);
  }
  actions.notes.push_back(absl::StrCat(roster_.name(*seat), " left"));
  after_leaving(now, actions);
}

void Core::after_leaving(absl::Duration now, Actions& actions) {
  check_declarations(now, actions);
  commit_if_acknowledged(now, actions);
  finish_if_all_left(actions);
  ask_for_plan(actions);
  go_on_if_all_back(now, actions);
}

void Core::finish_if_all_left(Actions& actions) {
  if (outcome_.has_value() || roster_.left_ranks() < roster_.ranks()) return;
  outcome_ = absl::OkStatus();
  tell_everyone(Finished{}, actions);
}

void Core::on_disconnected(StreamId stream, const absl::Status& why, Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of(stream);
  if (!seat.has_value() || outcome_.has_value() || roster_[*seat].state != Seat::State::kPresent) return;
  if (absl::IsUnavailable(why) && away(*seat, why.message(), last_tick_, actions)) return;
  lost(*seat, why.message(), actions);
}

void Core::on_tick(absl::Duration now, Actions& actions) {
  if (outcome_.has_value()) return;
  if (now - last_tick_ > options_.deadline / 2) {
    // It was the coordinator that slept; what the members said meanwhile is still to be read.
    for (uint32_t seat = 0; seat < roster_.size(); ++seat) roster_[seat].last_heard = roster_[seat].away_since = now;
  }
  last_tick_ = now;
  check_start(now, actions);
  check_silence(now, actions);
  check_declarations(now, actions);
  if (now - last_heartbeat_ >= kHeartbeatEvery && !outcome_.has_value()) {
    last_heartbeat_ = now;
    tell_everyone(Heartbeat{}, actions);
  }
}

void Core::check_start(absl::Duration now, Actions& actions) {
  if (committed_->epoch == 0 && proposed_ == nullptr) {
    if (now - started_ <= options_.start_timeout) return;
    const std::string within = absl::StrCat(" within ", absl::FormatDuration(options_.start_timeout));
    const std::vector<uint32_t> missing = roster_.missing();
    if (missing.empty()) {
      return fail(absl::DeadlineExceededError(absl::StrCat("nobody who came back told the plan in force", within)),
                  asked_, actions);
    }
    return fail(
        absl::DeadlineExceededError(
            recovering_
                ? absl::StrCat(roster_.names(missing), " did not come back", within, " of the coordinator's restart")
                : absl::StrCat(roster_.names(missing), " did not join", within,
                               "; are they running, with this coordinator's address and the job's token?")),
        missing.front(), actions);
  }
  if (proposed_ == nullptr || now - proposed_at_ <= options_.deadline) return;
  const std::vector<uint32_t> silent = unacknowledged();
  fail(absl::DeadlineExceededError(absl::StrCat(roster_.names(silent), " did not acknowledge the plan of epoch ",
                                                proposed_->epoch, " within ", absl::FormatDuration(options_.deadline))),
       silent.front(), actions);
}

void Core::check_silence(absl::Duration now, Actions& actions) {
  for (uint32_t seat = 0; seat < roster_.size() && !outcome_.has_value(); ++seat) {
    const Seat& member = roster_[seat];
    if (member.state == Seat::State::kPresent && now - member.last_heard > options_.deadline) {
      const std::string why = absl::StrCat("it has said nothing for ", absl::FormatDuration(options_.deadline));
      const StreamId stream = member.stream;
      if (away(seat, why, now, actions)) {
        actions.sends.push_back({stream, Rejected{absl::UnavailableError(why)}});
      } else {
        lost(seat, why, actions);
      }
    } else if (member.state == Seat::State::kAway && !recovering_ &&
               now - member.away_since > options_.return_timeout) {
      lost(seat,
           absl::StrCat("its connection broke, and it did not come back within ",
                        absl::FormatDuration(options_.return_timeout)),
           actions);
    }
  }
}

void Core::check_declarations(absl::Duration now, Actions& actions) {
  const std::optional<absl::Duration> since = declarations_.oldest_pending();
  if (!since.has_value() || outcome_.has_value()) {
    warned_of_declaration_ = false;
    return;
  }
  const bool late = now - *since > options_.declare_timeout;
  // With every Declare: who is missing is looked up only when it matters.
  const std::vector<uint32_t> missing =
      late || roster_.left_ranks() > 0 ? declarations_.missing() : std::vector<uint32_t>();
  for (const uint32_t rank : missing) {
    if (roster_[rank].state != Seat::State::kLeft) continue;
    return fail(absl::FailedPreconditionError(
                    absl::StrCat(declarations_.describe_pending(), "; ", roster_.name(rank), " has left the job")),
                rank, actions);
  }
  if (late) {
    return fail(absl::DeadlineExceededError(absl::StrCat(declarations_.describe_pending(), " within ",
                                                         absl::FormatDuration(options_.declare_timeout),
                                                         "; every rank must declare the same tensors")),
                missing.front(), actions);
  }
  if (now - *since > options_.deadline && !std::exchange(warned_of_declaration_, true)) {
    actions.warnings.push_back(
        absl::StrCat(declarations_.describe_pending(), " for ", absl::FormatDuration(options_.deadline)));
  }
}

Summary Core::summary() const {
  Summary summary = summarize(*committed_, reports_);
  summary.workers = options_.workers;
  summary.summers = summers();
  summary.local_ranks = options_.local_ranks;
  summary.succeeded = outcome_.has_value() && outcome_->ok();
  if (outcome_.has_value()) summary.error = std::string(outcome_->message());
  return summary;
}

}  // namespace gleaner::coordinator
