#include "comm-lib/supervision/supervisor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/backoff.h"
#include "common/base/faults.h"

namespace gleaner::supervision {

void Actions::clear() {
  drops.clear();
  dials.clear();
  losses.clear();
  healed.clear();
  warnings.clear();
}

void Supervisor::follow(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  if (plan_ == nullptr) last_tick_ = now;
  plan_ = std::move(plan);
  for (uint32_t member = 0; member < plan_->members.size(); ++member) {
    const plan::Member& what = plan_->members[member];
    const bool is_new = member == paths_.size();
    if (is_new) paths_.emplace_back();
    Path& path = paths_[member];
    if (!is_new && path.since == what.since && path.is_member == what.is_here()) continue;
    if (!is_new && path.is_member && GLN_MUTATION("a place that changes hands keeps its connection")) continue;
    if (path.phase != Phase::kDown) actions.drops.push_back({member, path.phase == Phase::kUp});
    path = Path();
    path.member = member;
    path.is_member = what.is_here();
    path.since = what.since;
    path.retry_at = now;
    path.pause = absl::ZeroDuration();
    path.warn_at = options_.first_warning;
  }
}

void Supervisor::retry_later(Path& path, absl::Duration now) const {
  path.pause = next_pause(path.pause, options_.first_pause, options_.longest_pause);
  path.retry_at = now + path.pause;
}

void Supervisor::on_dial_failed(uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions) {
  Path& path = paths_[member];
  path.phase = Phase::kDown;
  path.last = why;
  retry_later(path, now);
  // Retrying cannot help: the peers share no transport.
  if (absl::IsFailedPrecondition(why) && !path.reported) report_lost(path, why, now, actions);
}

void Supervisor::on_connected(uint32_t member) {
  Path& path = paths_[member];
  path.phase = Phase::kUp;
  if (GLN_MUTATION("a connection that comes up counts as progress")) {
    path.doubted = path.reported = false;
    path.spent = absl::ZeroDuration();
    path.pause = absl::ZeroDuration();
  }
}

void Supervisor::on_closed(uint32_t member, const absl::Status& why, absl::Duration now, Actions& actions) {
  Path& path = paths_[member];
  const bool was_up = std::exchange(path.phase, Phase::kDown) == Phase::kUp;
  path.last = why;
  retry_later(path, now);
  if (!was_up) return;
  path.doubted = true;
  ++path.breaks_without_progress;
  if (absl::IsDeadlineExceeded(why)) path.spent = std::max(path.spent, limit(path, true));
  if (const uint32_t breaks = path.breaks.on_break(now); breaks > 0) {
    actions.warnings.push_back({member,
                                absl::StrCat("connections break again and again: ", breaks, " within ",
                                             absl::FormatDuration(BreakCounter::kWindow)),
                                path.last});
  }
}

void Supervisor::clear_doubt(Path& path, Actions& actions) const {
  path.doubted = false;
  path.breaks_without_progress = 0;
  path.pause = absl::ZeroDuration();
  forget_spent(path, actions);
}

void Supervisor::forget_spent(Path& path, Actions& actions) const {
  path.spent = absl::ZeroDuration();
  path.warn_at = options_.first_warning;
  if (std::exchange(path.reported, false)) actions.healed.push_back(path.member);
}

void Supervisor::tick(absl::Duration now, absl::Span<const uint32_t> due, Actions& actions) {
  const absl::Duration elapsed = now - std::exchange(last_tick_, now);
  const bool stalls = !std::exchange(has_result_, false) && !due.empty();
  for (Path& path : paths_) {
    if (!path.is_member) continue;
    if (path.doubted) {
      const bool is_due = std::ranges::find(due, path.member) != due.end();
      const bool is_needed = is_cpu_summer(path)
                                 ? !ending_
                                 : stalls && coordinator_ != Coordinator::kThere && !is_due_worker_down(due) &&
                                       !GLN_MUTATION("nobody misses a worker that is lost after the coordinator");
      if (is_due || is_needed) {
        spend(path, is_due, elapsed, now, actions);
      } else {
        forget_spent(path, actions);  // a member that has done its part may leave before this worker
      }
    }
    if (path.phase != Phase::kDown || now < path.retry_at) continue;
    path.phase = Phase::kDialing;
    actions.dials.push_back(path.member);
  }
}

bool Supervisor::is_due_worker_down(absl::Span<const uint32_t> due) const {
  return std::ranges::any_of(due, [this](uint32_t member) {
    const Path& path = paths_[member];
    return !is_cpu_summer(path) && path.doubted && path.phase != Phase::kUp;
  });
}

void Supervisor::spend(Path& path, bool due, absl::Duration elapsed, absl::Duration now, Actions& actions) const {
  const absl::Duration most = limit(path, due);
  path.spent += std::min(elapsed, most / 4);
  if (path.spent >= path.warn_at && path.phase != Phase::kUp && !is_cpu_summer(path)) {
    path.warn_at = path.spent + options_.warn_every;
    actions.warnings.push_back(
        {path.member,
         absl::StrCat(path.breaks_without_progress > 1 ? "connections break without progress" : "out of reach", " for ",
                      absl::FormatDuration(absl::Trunc(path.spent, absl::Milliseconds(100))),
                      " while sums are due; the job ends after ", absl::FormatDuration(most)),
         path.last});
  }
  if (path.phase == Phase::kUp || path.reported || path.spent < most) return;
  report_lost(path, absl::UnavailableError(describe_loss(path, due, most)), now, actions);
}

void Supervisor::report_lost(Path& path, const absl::Status& why, absl::Duration now, Actions& actions) const {
  path.reported = true;
  actions.losses.push_back({path.member, !is_cpu_summer(path), now - path.spent, why});
}

std::string Supervisor::describe_loss(const Path& path, bool due, absl::Duration limit) const {
  const std::string time = absl::FormatDuration(limit);
  std::string how =
      path.breaks_without_progress > 1
          ? absl::StrCat(path.breaks_without_progress, " connections to it broke without progress, within ", time)
          : absl::StrCat("out of reach for ", time);
  absl::StrAppend(&how,
                  is_cpu_summer(path) ? "; last: "
                  : due               ? " while sums are due from it; last: "
                  : coordinator_ == Coordinator::kAway
                      ? " while sums wait, and the coordinator is out of reach, too; last: "
                      : " while sums wait, and no coordinator is left; last: ",
                  path.last.message());
  if (is_cpu_summer(path)) return how;
  return absl::StrCat(plan_->member_name(path.member), " at ", plan_->members[path.member].address, " is lost: ", how);
}

bool Supervisor::all_up() const {
  return std::ranges::all_of(paths_, [](const Path& path) { return path.phase == Phase::kUp || !path.is_member; });
}

bool Supervisor::all_settled() const {
  return std::ranges::all_of(
      paths_, [](const Path& path) { return !path.is_member || (path.phase == Phase::kUp && !path.doubted); });
}

}  // namespace gleaner::supervision
