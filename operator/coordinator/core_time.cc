// What passes with time alone: the part of Core that gives up waiting.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/faults.h"
#include "operator/coordinator/core.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);
constexpr absl::Duration kSilent = absl::Seconds(2);  // of a member that sends heartbeats

}  // namespace

void Core::on_tick(absl::Duration now, Actions& actions) {
  if (outcome_.has_value()) return;
  const absl::Duration pause = now - last_tick_;
  if (pause > std::min(options_.deadline, options_.summer_timeout) / 2) {
    // It was the coordinator that slept; what the members said meanwhile is still to be read.
    for (uint32_t seat = 0; seat < roster_.size(); ++seat) {
      roster_[seat].last_heard += pause;
      roster_[seat].away_since += pause;
    }
  }
  last_tick_ = now;
  check_verdict(now, actions);
  check_start(now, actions);
  check_silence(now, actions);
  check_declarations(now, actions);
  check_stalls(now, actions);
  check_leavers(now, actions);
  go_on_without_summers(now, actions);
  propose_next(now, actions);  // one that was given up may be due again
  if (now - last_heartbeat_ >= kHeartbeatEvery && !outcome_.has_value()) {
    last_heartbeat_ = now;
    tell_everyone(Heartbeat{}, actions);
  }
}

void Core::check_start(absl::Duration now, Actions& actions) {
  if (committed_->epoch == 0 && proposed_ == nullptr) {
    if (now - started_ <= options_.start_timeout) return warn_of_missing(now, actions);
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
  if (proposed_ == nullptr) return;
  const bool optional = proposed_why_ == Why::kFaster;
  const bool in_time = now - proposed_at_ <= (optional ? options_.change_timeout : options_.deadline);
  if (in_time && !(optional && GLN_INJECT("coordinator: a change is given up early"))) return;
  const std::vector<uint32_t> silent = unacknowledged();
  if (optional) {
    return give_up_change(absl::StrCat(roster_.names(silent), " did not acknowledge it within ",
                                       absl::FormatDuration(options_.change_timeout)),
                          now, actions);
  }
  if (roster_.is_summer(silent.front())) {
    return remove_summer(silent.front(), "it does not acknowledge a plan", now, actions);
  }
  fail_by_loss(
      absl::DeadlineExceededError(absl::StrCat(roster_.names(silent), " did not acknowledge the plan of epoch ",
                                               proposed_->epoch, " within ", absl::FormatDuration(options_.deadline))),
      silent.front(), actions);
}

// Of a job that the operator started, the operator says why pods do not run: then only members that wait are told of.
void Core::warn_of_missing(absl::Duration now, Actions& actions) {
  const std::vector<uint32_t> missing = roster_.missing();
  const bool anybody_waits = roster_.joined_ranks() + roster_.joined_summers() > 0;
  if (missing.empty() || now - started_ < kStallAfter || now < next_missing_warning_) return;
  if (origin_.may_resume && !anybody_waits) return;
  next_missing_warning_ = now + kMissingEvery;
  actions.warnings.push_back(absl::StrCat(
      "waiting for ", roster_.names(missing), " to ",
      recovering_ ? "come back: " : "join: ", absl::FormatDuration(absl::Floor(now - started_, absl::Seconds(1))),
      " of at most ", absl::FormatDuration(options_.start_timeout)));
}

void Core::check_silence(absl::Duration now, Actions& actions) {
  for (uint32_t seat = 0; seat < roster_.size() && !outcome_.has_value(); ++seat) {
    const Seat& member = roster_[seat];
    const bool replaceable = roster_.is_summer(seat);
    const absl::Duration silence = replaceable ? options_.summer_timeout : options_.deadline;
    const absl::Duration absence = replaceable ? options_.summer_timeout : options_.return_timeout;
    const bool suspected = replaceable && !recovering_ && GLN_INJECT("coordinator: a summer is taken for lost");
    if (member.state == Seat::State::kPresent && (suspected || now - member.last_heard > silence)) {
      const std::string why = absl::StrCat("it has said nothing for ", absl::FormatDuration(silence));
      const StreamId stream = member.stream;
      if (replaceable && !recovering_) {
        remove_summer(seat, why, now, actions);
      } else if (away(seat, why, now, actions)) {
        actions.sends.push_back({stream, Rejected{absl::UnavailableError(why)}});
      } else {
        lost(seat, why, actions);
      }
    } else if (member.state == Seat::State::kAway && !recovering_ && now - member.away_since > absence) {
      const std::string why =
          absl::StrCat("its connection broke, and it did not come back within ", absl::FormatDuration(absence));
      if (replaceable) {
        remove_summer(seat, why, now, actions);
      } else {
        lost(seat, why, actions);
      }
    }
  }
}

void Core::check_declarations(absl::Duration now, Actions& actions) {
  const std::optional<absl::Duration> since = declarations_.oldest_pending();
  if (!since.has_value() || outcome_.has_value()) return;
  const bool is_due = now - *since > std::min(kStallAfter, options_.declare_timeout);
  // With every Declare: who is missing is looked up only when it matters.
  const std::vector<uint32_t> missing =
      is_due || roster_.left_ranks() > 0 ? declarations_.missing() : std::vector<uint32_t>();
  for (const uint32_t rank : missing) {
    if (roster_[rank].state != Seat::State::kLeft) continue;
    return fail(absl::FailedPreconditionError(absl::StrCat(declarations_.describe_pending(), "; ", roster_.name(rank),
                                                           " has left the job", steps_of(rank))),
                rank, actions);
  }
  // A rank that does something else, as loading a checkpoint, may still come to it. One that waits itself does not.
  if (now - *since > options_.declare_timeout && are_waiting(missing, now)) {
    return fail(absl::DeadlineExceededError(absl::StrCat(
                    declarations_.describe_pending(), " within ", absl::FormatDuration(options_.declare_timeout), "; ",
                    roster_.name(missing.front()), " waits for tensor '", stalls_.waiting(missing.front())->tensor,
                    "'; every rank must declare the same tensors")),
                missing.front(), actions);
  }
  if (now - *since < kStallAfter || now < next_declaration_warning_) return;
  next_declaration_warning_ = now + kWarnEvery;
  actions.warnings.push_back(absl::StrCat(declarations_.describe_pending(), " for ",
                                          absl::FormatDuration(absl::Floor(now - *since, absl::Seconds(1))),
                                          "; a worker sends its declarations with its next push_pull"));
}

// For as long as the declare timeout, each of them.
bool Core::are_waiting(const std::vector<uint32_t>& ranks, absl::Duration now) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
    const std::optional<Waiting>& waiting = stalls_.waiting(rank);
    return waiting.has_value() && now - waiting->since > options_.declare_timeout;
  });
}

// --- ranks that others wait for

void Core::check_stalls(absl::Duration now, Actions& actions) {
  if (outcome_.has_value() || recovering_ || ending_) return;
  if (declarations_.oldest_pending().has_value()) return;  // that is warned of, and may be what they wait for
  if (const std::optional<std::string> tensor = stalls_.ask(now); tensor.has_value()) {
    for (uint32_t rank = 0; rank < roster_.ranks(); ++rank) tell(rank, Inquire{*tensor}, actions);
  }
  if (std::optional<std::string> warning = stalls_.warning(now)) actions.warnings.push_back(*std::move(warning));
  const std::optional<Stalls::Circle> circle = stalls_.circle(now, options_.declare_timeout);
  if (!circle.has_value()) return;
  fail(absl::DeadlineExceededError(
           absl::StrCat("ranks wait for each other: ", circle->text,
                        "; all ranks must wait for tensors in the same order, or begin all of them before they wait")),
       circle->rank, actions);
}

// A rank leaves well when every rank has the sums that it took part in. So what another rank waits for after that is a
// sum that the leaver takes no part in, which nobody can make.
void Core::check_leavers(absl::Duration now, Actions& actions) {
  if (!ending_since_.has_value() || outcome_.has_value() || recovering_) return;
  const std::optional<uint32_t> waiting = stalls_.longest();
  if (!waiting.has_value()) return;
  // A rank that says nothing may have what it waited for.
  if (now - roster_[*waiting].last_heard > kSilent) return;
  // Results that were there when it left may still be on their way.
  const absl::Duration began = std::max(*ending_since_, stalls_.waiting(*waiting)->since);
  if (now - began < options_.deadline / 2) return;
  std::optional<uint32_t> left;
  for (uint32_t rank = 0; rank < roster_.ranks(); ++rank) {
    if (roster_[rank].state != Seat::State::kLeft) continue;
    if (!left.has_value() || progress_.latest(rank).steps < progress_.latest(*left).steps) left = rank;
  }
  if (left.has_value()) fail_by_loss(absl::UnavailableError(finished_early(*left, *waiting)), *left, actions);
}

std::string Core::finished_early(uint32_t left, uint32_t waiting) const {
  const uint64_t steps = progress_.latest(left).steps;
  const std::optional<Waiting>& what = stalls_.waiting(waiting);
  return absl::StrCat(roster_.name(left), " finished", steps == 0 ? "" : absl::StrCat(" after ", steps, " steps"), "; ",
                      roster_.name(waiting), " is at step ", progress_.latest(waiting).steps + 1,
                      what.has_value() ? absl::StrCat(", and waits for tensor '", what->tensor, "'") : "",
                      ": every rank must take part in every step");
}

// How far a rank and the others were when they last said so, for messages about its end.
std::string Core::steps_of(uint32_t seat) const {
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < roster_.ranks(); ++rank) {
    if (rank != seat) most = std::max(most, progress_.latest(rank).steps);
  }
  if (roster_.is_summer(seat) || most + progress_.latest(seat).steps == 0) return "";
  const uint64_t own = progress_.latest(seat).steps;
  // Reports of those that live are up to a second old.
  return absl::StrCat("; its last report was of ", own, " steps",
                      most > own ? absl::StrCat(", the others' of up to ", most) : "");
}

}  // namespace gleaner::coordinator
