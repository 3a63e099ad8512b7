#include "operator/coordinator/core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/faults.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {

Core::Core(const Options& options, absl::Duration now, Origin origin)
    : options_(options),
      origin_(std::move(origin)),
      started_(now),
      last_tick_(now),
      last_heartbeat_(now),
      roster_(options),
      declarations_(&roster_),
      session_(origin_.session),
      highest_epoch_(origin_.epoch),
      stalls_(&roster_),
      progress_(roster_.ranks()) {}

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
  if (verdict_.has_value()) return conclude(verdict_->status, verdict_->seat, actions);  // it came first
  if (culprit.has_value() && left_well_.contains(*culprit) && is_exit_awaited(*culprit)) {
    verdict_ = {status, *culprit, last_tick_};
    return;
  }
  end(status, culprit, actions);
}

void Core::end(const absl::Status& status, std::optional<uint32_t> culprit, Actions& actions) {
  outcome_ = status;
  culprit_ = culprit;
  tell_everyone(Failed{status}, actions);
}

void Core::lost(uint32_t seat, absl::string_view why, Actions& actions) {
  fail_by_loss(absl::UnavailableError(absl::StrCat(roster_.located(seat), " is lost: ", why, steps_of(seat))), seat,
               actions);
}

void Core::fail_by_loss(const absl::Status& status, uint32_t seat, Actions& actions) {
  if (has_failed()) return;
  if (is_exit_awaited(seat)) {
    verdict_ = {status, seat, last_tick_};
    return;
  }
  failed_by_loss_ = true;
  fail(status, seat, actions);
}

void Core::stop(const absl::Status& why, Actions& actions) { fail(why, std::nullopt, actions); }

Phase Core::phase() const {
  if (outcome_.has_value()) return Phase::kEnded;
  if (recovering_) return Phase::kRecovering;
  return committed_->epoch == 0 ? Phase::kGathering : Phase::kRunning;
}

void Core::on_heartbeat(StreamId stream, absl::Duration now) { heard(stream, now); }

// None: nobody says how fast its link is.
std::optional<double> Core::known_bandwidth_of(uint32_t member) const {
  const bool worker = member < options_.workers;
  const auto& list = worker ? options_.worker_bits_per_second : options_.summer_bits_per_second;
  const uint32_t seat = roster_.seat_of_member(member);
  if (roster_[seat].bits_per_second > 0) return roster_[seat].bits_per_second;
  if (const uint32_t index = roster_.index_of(seat); index < list.size() && list[index] > 0) return list[index];
  if (options_.bits_per_second > 0) return options_.bits_per_second;
  const double own = roster_[seat].identity.bits_per_second;
  return own > 0 ? std::optional(own) : std::nullopt;
}

// What plans take a link for whose speed nobody knows: as fast as the others, by their median.
double Core::stand_in_bandwidth() const {
  std::vector<double> known;
  for (uint32_t member = 0; member < options_.workers + summers(); ++member) {
    if (!roster_[roster_.seat_of_member(member)].takes_part()) continue;
    if (const std::optional<double> bandwidth = known_bandwidth_of(member)) known.push_back(*bandwidth);
  }
  if (known.empty()) return kAssumedBitsPerSecond;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

void Core::propose_first(absl::Duration now, Actions& actions) {
  plan::Fleet fleet;
  const uint32_t members = options_.workers + summers();
  const double stand_in = stand_in_bandwidth();
  for (uint32_t member = 0; member < members; ++member) {
    auto& side = member < options_.workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second;
    side.push_back(known_bandwidth_of(member).value_or(stand_in));
  }
  auto plan = plan::make_plan(fleet, {}, {options_.partition_bytes});
  if (!plan.ok()) return fail(plan.status(), std::nullopt, actions);
  plan->epoch = highest_epoch_ + 1;
  plan->members = members_wanted(plan->epoch);
  plan->local_ranks = options_.local_ranks;
  propose(*std::move(plan), Why::kNeeded, now, actions);
}

// The next plan there is a reason for.
void Core::propose_next(absl::Duration now, Actions& actions) {
  if (proposed_ != nullptr || recovering_ || committed_->epoch == 0 || outcome_.has_value()) return;
  if (GLN_INJECT("coordinator: the next plan waits for a tick")) return;
  const uint32_t epoch = highest_epoch_ + 1;
  const bool recovers = is_anybody_lost() && !ending_;
  plan::Plan plan = *committed_;
  Why why = Why::kNeeded;
  if (recovers) {
    why = Why::kRecovery;
    plan = plan::reassign(*committed_, members_left(), epoch, plan::Reassign::kLost);
  } else if (agreed_.empty()) {
    std::vector<plan::Member> wanted = members_wanted(epoch);
    const bool changes = uneven_ || wanted != committed_->members;
    if (!changes || ending_ || now < next_change_) return;
    why = Why::kFaster;
    plan = plan::reassign(*committed_, std::move(wanted), epoch, plan::Reassign::kAll);
  }
  if (!agreed_.empty()) {
    auto extended = plan::extend_plan(plan, agreed_, {options_.partition_bytes}, epoch);
    if (!extended.ok()) return fail(extended.status(), std::nullopt, actions);
    plan = *std::move(extended);
  }
  proposed_tensors_ = agreed_.size();
  propose(std::move(plan), why, now, actions);
}

void Core::propose(plan::Plan plan, Why why, absl::Duration now, Actions& actions) {
  proposed_ = std::make_shared<const plan::Plan>(std::move(plan));
  proposed_at_ = now;
  proposed_why_ = why;
  highest_epoch_ = proposed_->epoch;
  tell_part_of(*proposed_, Prepare{proposed_}, actions);
}

bool Core::is_awaited(uint32_t seat) const {
  if (seat == 0 && GLN_MUTATION("a plan is committed without a worker's word")) return false;
  return roster_[seat].state != Seat::State::kLeft && roster_[seat].acknowledged < proposed_->epoch &&
         is_part_of(*proposed_, seat);
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
    if (epoch <= highest_epoch_) {  // said once more, or of a plan that was given up, perhaps by another coordinator
      GLN_RARE("coordinator: an acknowledgement comes too late");
      return;
    }
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
  const std::shared_ptr<const plan::Plan> before = std::exchange(committed_, std::exchange(proposed_, nullptr));
  tell_part_of(*committed_, Commit{committed_->epoch}, actions);
  actions.notes.push_back(absl::StrCat("plan committed: epoch ", committed_->epoch, ", ", committed_->summers(),
                                       " summers, ", committed_->tensors.size(), " tensors in ",
                                       committed_->partitions.size(), " partitions"));
  agreed_.erase(agreed_.begin(), agreed_.begin() + static_cast<ptrdiff_t>(std::exchange(proposed_tensors_, 0)));
  progress_.on_plan(*committed_);
  after_commit(*before, now, actions);
  propose_next(now, actions);
}

void Core::on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  const std::string reason = absl::StrCat("it can't follow the plan of epoch ", epoch, ": ", why.message());
  if (roster_.is_summer(*seat)) return remove_summer(*seat, reason, now, actions);
  if (proposed_ != nullptr && epoch == proposed_->epoch && proposed_why_ == Why::kFaster) {
    return give_up_change(absl::StrCat(roster_.located(*seat), ": ", reason), now, actions);
  }
  fail({why.ok() ? absl::StatusCode::kUnknown : why.code(),
        absl::StrCat(roster_.located(*seat), " can't follow the plan of epoch ", epoch, ": ", why.message())},
       *seat, actions);
}

void Core::on_declared(StreamId stream, const std::vector<plan::Tensor>& tensors,
                       const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  if (roster_.is_summer(*seat)) {
    return fail(absl::InternalError(absl::StrCat(roster_.located(*seat), " declared tensors; only workers do")), *seat,
                actions);
  }
  if (recovering_) return declared_early_.push_back({*seat, tensors, operations});
  declare(*seat, tensors, operations, now, actions);
  propose_next(now, actions);
  check_declarations(now, actions);
}

void Core::declare(uint32_t seat, const std::vector<plan::Tensor>& tensors,
                   const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions) {
  absl::Status status = declarations_.declare(seat, tensors, now);
  if (status.ok()) status = declarations_.operate(seat, operations);
  if (!status.ok()) return fail(status, seat, actions);
  for (plan::Tensor& tensor : declarations_.take_agreed()) agreed_.push_back(std::move(tensor));
}

void Core::on_report(StreamId stream, const Report& report, absl::Duration now) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (seat.has_value() && !roster_.is_summer(*seat)) progress_.on_report(*seat, report, now);
}

void Core::on_waiting(StreamId stream, std::optional<Waiting> waiting, absl::Duration now) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (seat.has_value() && !roster_.is_summer(*seat)) stalls_.on_waiting(*seat, std::move(waiting));
}

void Core::on_begun(StreamId stream, const std::string& tensor, uint64_t push_pulls, absl::Duration now) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (seat.has_value() && !roster_.is_summer(*seat)) stalls_.on_begun(*seat, tensor, push_pulls);
}

void Core::on_fault(StreamId stream, uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  const std::string report = absl::StrCat(roster_.name(*seat), " reports: ", why.message());
  if (recovering_ && member >= options_.workers && member < plan::kMaxMembers) {
    GLN_RARE("coordinator: a summer is out of reach while the job is being taken up");
    accused_.emplace(member, report);
    return;
  }
  if (member >= options_.workers + summers()) {
    return fail(absl::UnavailableError(absl::StrCat(roster_.located(*seat), " can't go on: ", why.message())), *seat,
                actions);
  }
  const uint32_t accused = roster_.seat_of_member(member);
  if (roster_.is_summer(accused)) return remove_summer(accused, report, now, actions);
  // Whoever left well closed its connections, and can't be reached by a rank that still needs it.
  if (roster_[accused].state == Seat::State::kLeft) {
    return fail_by_loss(absl::UnavailableError(finished_early(accused, *seat)), accused, actions);
  }
  lost(accused, report, actions);
}

void Core::on_left(StreamId stream, const absl::Status& status, uint32_t epoch, absl::Duration now, Actions& actions) {
  const std::optional<uint32_t> seat = heard(stream, now);
  if (!seat.has_value()) return;
  if (roster_.is_summer(*seat) && !status.ok()) {
    return remove_summer(*seat, absl::StrCat("it ends: ", status.message()), now, actions);
  }
  if (roster_.is_summer(*seat) && has_begun()) {
    roster_[*seat].leaving = true;
    actions.notes.push_back(absl::StrCat(roster_.located(*seat), " wants to leave"));
    next_change_ = now;
    if (ending_ || !is_part_of(*committed_, *seat)) return let_go(*seat, actions);
    return propose_next(now, actions);
  }
  if (roster_.is_summer(*seat)) {
    let_go(*seat, actions);
    return begin_if_all_here(now, actions);
  }
  if (status.ok() && recovering_) {
    GLN_RARE("coordinator: a worker leaves while the job is being taken up");
    roster_[*seat].leaving = true;
    roster_[*seat].leaves_at = epoch;
    return;
  }
  if (status.ok() && epoch < committed_->epoch && !GLN_MUTATION("a worker leaves though it is behind")) {
    GLN_RARE("coordinator: a worker leaves before it has heard of a plan");
    return;
  }
  if (status.ok() && has_begun()) return leave_well(*seat, now, actions);
  roster_.vacate(*seat, Seat::State::kLeft, now);
  actions.sends.push_back({stream, Goodbye{}});
  if (const auto early = neighbour_that_left(*seat); absl::IsUnavailable(status) && early.has_value()) {
    const uint64_t steps = progress_.latest(*early).steps;
    return fail_by_loss(
        absl::UnavailableError(
            absl::StrCat(roster_.name(*early), " finished", steps == 0 ? "" : absl::StrCat(" after ", steps, " steps"),
                         "; ", roster_.name(*seat), " was at step ", progress_.latest(*seat).steps + 1,
                         ", and left with an error: ", status.message(), "; every rank must take part in every step")),
        *early, actions);
  }
  fail_by_loss(
      absl::UnavailableError(status.ok() ? absl::StrCat(roster_.located(*seat), " left before the job had begun")
                                         : absl::StrCat(roster_.located(*seat),
                                                        " left with an error: ", status.message(), steps_of(*seat))),
      *seat, actions);
}

// A local rank of the same worker that has left well: no other can go on without it.
std::optional<uint32_t> Core::neighbour_that_left(uint32_t seat) const {
  const uint32_t first = roster_.seat_of_member(roster_.member_of(seat));
  const auto left = left_well_.lower_bound(first);
  if (left == left_well_.end() || *left >= first + options_.local_ranks) return std::nullopt;
  return *left;
}

void Core::leave_well(uint32_t seat, absl::Duration now, Actions& actions) {
  left_well_.insert(seat);
  tell(seat, Goodbye{}, actions);
  roster_.vacate(seat, Seat::State::kLeft, now);
  actions.notes.push_back(absl::StrCat(roster_.name(seat), " left"));
  after_leaving(now, actions);
}

void Core::after_leaving(absl::Duration now, Actions& actions) {
  if (!std::exchange(ending_, true)) tell_everyone(Ending{}, actions);
  if (!ending_since_.has_value()) ending_since_ = now;
  if (proposed_ != nullptr && proposed_why_ != Why::kNeeded) withdraw_proposal();
  check_declarations(now, actions);
  commit_if_acknowledged(now, actions);
  finish_if_all_left(actions);
  ask_for_plan(actions);
  go_on_if_all_back(now, actions);
}

void Core::finish_if_all_left(Actions& actions) {
  if (has_failed() || roster_.left_ranks() < roster_.ranks()) return;
  outcome_ = absl::OkStatus();
  tell_everyone(Finished{}, actions);
}

void Core::on_disconnected(StreamId stream, const absl::Status& why, Actions& actions) {
  const std::optional<uint32_t> seat = roster_.seat_of(stream);
  if (!seat.has_value() || outcome_.has_value() || roster_[*seat].state != Seat::State::kPresent) return;
  if (recovering_ && !roster_.is_summer(*seat) && roster_[*seat].leaving) return leave_well(*seat, last_tick_, actions);
  if (absl::IsUnavailable(why) && away(*seat, why.message(), last_tick_, actions)) return;
  if (roster_.is_summer(*seat)) return remove_summer(*seat, why.message(), last_tick_, actions);
  lost(*seat, why.message(), actions);
}

Summary Core::summary() const {
  Summary summary = summarize(*committed_, progress_, last_tick_);
  summary.workers = options_.workers;
  summary.summers = committed_->epoch > 0 ? committed_->summers() : summers();
  summary.local_ranks = options_.local_ranks;
  summary.succeeded = outcome_.has_value() && outcome_->ok();
  if (outcome_.has_value()) summary.error = std::string(outcome_->message());
  return summary;
}

}  // namespace gleaner::coordinator
