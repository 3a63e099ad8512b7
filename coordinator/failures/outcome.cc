#include "coordinator/failures/outcome.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/failures/suspects.h"

namespace gleaner::coordinator {

absl::Status has_ended(const absl::Status& outcome) {
  if (outcome.ok()) return absl::FailedPreconditionError("this job has ended");
  return absl::FailedPreconditionError(absl::StrCat("this job has failed: ", outcome.message()));
}

bool Outcome::is_exit_awaited(uint32_t seat) const {
  if (options_.launcher.exit_timeout <= absl::ZeroDuration() || roster_.is_summer(seat)) return false;
  return !exits_.contains(seat);
}

// Returns whether some rank has left cleanly and its process still runs. If that process exits with an error, the rank
// is the cause.
bool Outcome::is_leaver_undecided() const {
  return std::any_of(left_cleanly_.begin(), left_cleanly_.end(),
                     [this](uint32_t seat) { return !exits_.contains(seat); });
}

bool Outcome::end(absl::Status status, std::optional<uint32_t> culprit, bool is_loss) {
  pending_.reset();
  status_ = std::move(status);
  culprit_ = culprit;
  is_loss_ = is_loss;
  return true;
}

bool Outcome::end_by_exit(const std::string& message, uint32_t seat) {
  return end(absl::UnavailableError(message), seat, true);
}

bool Outcome::end_by_pending_failure() {
  const Pending pending = *pending_;
  return end(pending.status, pending.seat, true);
}

const absl::Status& Outcome::status_for(uint32_t seat) const {
  if (roster_.is_summer(seat)) return *status_;
  const auto own = own_.find(roster_.member_of(seat));
  return own == own_.end() ? *status_ : own->second;
}

bool Outcome::fail(const Failure& failure, absl::Duration now) {
  if (has_ended()) return false;
  if (failure.culprit.has_value() && !failure.own.ok()) own_.insert({roster_.member_of(*failure.culprit), failure.own});
  const bool is_suspect_lost = failure.is_loss && failure.culprit.has_value() && is_suspect(*failure.culprit);
  if (pending_.has_value() && !is_suspect_lost) {
    return !failure.is_loss && end_by_pending_failure();  // the loss that came first
  }
  const bool is_missing = failure.culprit.has_value() && (failure.is_loss || left_cleanly_.contains(*failure.culprit));
  if (!is_missing) return end(failure.status, failure.culprit, failure.is_loss);
  Pending pending{failure.status, *failure.culprit, now, false,
                  find_suspects(options_, roster_, *failure.culprit, now)};
  if (pending.suspects.empty() && !is_exit_awaited(pending.seat)) {
    return end(failure.status, failure.culprit, failure.is_loss);
  }
  pending_ = std::move(pending);
  return false;
}

bool Outcome::succeed() { return !has_failed() && end(absl::OkStatus(), std::nullopt, false); }

bool Outcome::on_tick(absl::Duration now) {
  if (!pending_.has_value()) return false;
  const absl::Duration limit =
      has_suspects() ? options_.deadline + options_.return_timeout : options_.launcher.exit_timeout;
  return (is_settled() || now - pending_->since >= limit) && end_by_pending_failure();
}

// Returns whether the pending failure is final, because all is known about it.
bool Outcome::is_settled() const {
  return pending_.has_value() && pending_->explained && pending_->suspects.empty() && !is_leaver_undecided();
}

bool Outcome::check_exits_before_start() {
  if (!any_rank_joined_ || has_failed()) return false;
  for (const auto& [seat, exit] : exits_) {
    if (roster_[seat].takes_part()) continue;
    return end_by_exit(absl::StrCat(roster_.name(seat), " ", exit.message,
                                    " before the job had begun; every rank must join it (gleaner.init())"),
                       seat);
  }
  return false;
}

bool Outcome::on_exited(uint32_t seat, const RankExit& exit, bool has_job_begun, absl::string_view steps,
                        absl::Duration now) {
  if (has_ended()) return false;
  exits_.insert({seat, exit});
  if (roster_[seat].state == Seat::State::kEmpty && !has_job_begun) {
    if (exit.well) return check_exits_before_start();
    return end_by_exit(absl::StrCat(roster_.name(seat), " ", exit.message, " before it had joined the job"), seat);
  }
  if (left_cleanly_.contains(seat) && !exit.well) {
    // Ranks that have failed since may have failed because this rank was missing.
    hold(absl::StrCat(roster_.located(seat), " left the job, and its process ", exit.message, steps), seat, now);
    return pending_->suspects.empty() && end_by_pending_failure();
  }
  if (pending_.has_value() && pending_->seat == seat) {
    const std::string known = absl::StrCat(pending_->status.message(), "; its process ", exit.message);
    pending_->status = absl::Status(pending_->status.code(), known);
    pending_->explained = true;
  } else if (roster_[seat].state != Seat::State::kLeft && may_replace_pending_failure(seat)) {
    const std::string loss = absl::StrCat(roster_.located(seat), " is lost: its process ", exit.message,
                                          exit.well ? " without leaving the job" : "", steps);
    hold(loss, seat, now);
  }
  return is_settled() && end_by_pending_failure();
}

// Makes the exit of the rank in this seat the pending failure.
void Outcome::hold(const std::string& message, uint32_t seat, absl::Duration now) {
  std::set<uint32_t> suspects = find_suspects(options_, roster_, seat, now);
  const absl::Duration since = pending_.has_value() ? pending_->since : now;
  pending_ = {absl::UnavailableError(message), seat, since, true, std::move(suspects)};
}

// Returns whether the exit of the rank in this seat can be the cause of the failure. After the loss of a rank, exits of
// other workers' ranks are consequences of the loss, except those of its suspects.
bool Outcome::may_replace_pending_failure(uint32_t seat) const {
  if (!pending_.has_value() || is_suspect(seat)) return true;
  return !pending_->explained && roster_.member_of(pending_->seat) == roster_.member_of(seat);
}

std::optional<uint32_t> Outcome::local_rank_that_left(uint32_t seat) const {
  const auto left = left_cleanly_.lower_bound(roster_.seat_of_member(roster_.member_of(seat)));
  if (left == left_cleanly_.end() || roster_.member_of(*left) != roster_.member_of(seat)) return std::nullopt;
  return *left;
}

}  // namespace gleaner::coordinator
