// What a launcher sees of the ranks' processes: the part of Core that finds out which of them was the cause.
//
// When a rank is lost, others notice first by connections that break, and may fail for want of it before its launcher
// has seen it end. So a loss is a verdict only: for exit_timeout the launcher may say how that rank's process ended, or
// that one which had left well ended in error, and was the cause.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/coordinator/core.h"

namespace gleaner::coordinator {

bool Core::is_exit_awaited(uint32_t seat) const {
  if (options_.exit_timeout <= absl::ZeroDuration() || roster_.is_summer(seat)) return false;
  return !exits_.contains(seat);
}

void Core::conclude(absl::Status status, uint32_t seat, Actions& actions) {
  verdict_.reset();
  failed_by_loss_ = true;
  end(status, seat, actions);
}

void Core::check_verdict(absl::Duration now, Actions& actions) {
  if (!verdict_.has_value() || now - verdict_->since < options_.exit_timeout) return;
  conclude(verdict_->status, verdict_->seat, actions);
}

// A rank that has left well and whose process may yet end in error: then it was the cause.
bool Core::is_leaver_undecided() const {
  return std::any_of(left_well_.begin(), left_well_.end(), [this](uint32_t seat) { return !exits_.contains(seat); });
}

// A rank whose process has ended won't join; the others need not wait for it.
void Core::check_exits_before_start(Actions& actions) {
  if (!anybody_joined_ || has_failed()) return;
  for (const auto& [seat, exit] : exits_) {
    if (roster_[seat].takes_part()) continue;
    return conclude(
        absl::UnavailableError(absl::StrCat(roster_.name(seat), " ", exit.message,
                                            " before the job had begun; every rank must join it (gleaner.init())")),
        seat, actions);
  }
}

void Core::on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions) {
  const std::optional<uint32_t> first = roster_.seat_of_index(Role::kWorker, worker);
  if (!first.has_value() || local_rank >= options_.local_ranks || outcome_.has_value()) return;
  const uint32_t seat = *first + local_rank;
  exits_.insert({seat, exit});
  if (roster_[seat].state == Seat::State::kEmpty && !has_begun()) {
    if (exit.well) return check_exits_before_start(actions);
    return conclude(
        absl::UnavailableError(absl::StrCat(roster_.name(seat), " ", exit.message, " before it had joined the job")),
        seat, actions);
  }
  if (left_well_.contains(seat) && !exit.well) {
    // Those that failed since may have done so for want of it.
    return conclude(absl::UnavailableError(absl::StrCat(roster_.located(seat), " left the job, and its process ",
                                                        exit.message, steps_of(seat))),
                    seat, actions);
  }
  if (verdict_.has_value() && verdict_->seat == seat) {
    const std::string known = absl::StrCat(verdict_->status.message(), "; its process ", exit.message);
    verdict_->status = absl::Status(verdict_->status.code(), known);
    verdict_->explained = true;
  }
  if (verdict_.has_value()) {
    if (verdict_->explained && !is_leaver_undecided()) return conclude(verdict_->status, verdict_->seat, actions);
    // Ranks of other workers end for want of the one that is lost.
    if (verdict_->seat < *first || verdict_->seat >= *first + options_.local_ranks) return;
  }
  if (roster_[seat].state == Seat::State::kLeft) return;
  conclude(absl::UnavailableError(absl::StrCat(roster_.located(seat), " is lost: its process ", exit.message,
                                               exit.well ? " without leaving the job" : "", steps_of(seat))),
           seat, actions);
}

}  // namespace gleaner::coordinator
