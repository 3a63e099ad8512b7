#include "coordinator/failures/deadlocks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text_table.h"
#include "coordinator/failures/suspects.h"
#include "coordinator/planning/advice.h"

namespace gleaner::coordinator {
std::optional<Failure> DeadlockDetector::check_declarations(absl::Duration now, Actions& actions) {
  const std::optional<absl::Duration> since = declarations_.oldest_pending();
  if (!since.has_value()) return std::nullopt;
  const auto& [waiting, busy] = options_.declare_timeouts;
  const bool is_due = now - *since > std::min({kStallAfter, waiting, busy.value_or(waiting)});
  // This function runs with every Declare, so it looks up the missing ranks only when they can matter.
  const std::vector<uint32_t> missing =
      is_due || roster_.left_ranks() > 0 ? declarations_.missing() : std::vector<uint32_t>();
  for (const uint32_t rank : missing) {
    if (roster_[rank].state != Seat::State::kLeft) continue;
    return Failure{absl::UnavailableError(absl::StrCat(declarations_.describe_pending(), "; ", roster_.name(rank),
                                                       " has left the job", efficiency_.describe_steps(rank))),
                   rank};
  }
  if (now - *since > options_.declare_timeouts.waiting && are_waiting(missing, now)) {
    return Failure{absl::DeadlineExceededError(absl::StrCat(declarations_.describe_pending(), " within ",
                                                            absl::FormatDuration(options_.declare_timeouts.waiting),
                                                            "; ", describe_wait(missing.front()))),
                   missing.front()};
  }
  if (options_.declare_timeouts.busy.has_value() && now - *since > *options_.declare_timeouts.busy) {
    return Failure{absl::DeadlineExceededError(absl::StrCat(declarations_.describe_pending(), " within ",
                                                            absl::FormatDuration(*options_.declare_timeouts.busy), "; ",
                                                            advice_about(*declarations_.pending()))),
                   missing.front()};
  }
  if (now - *since < kStallAfter || now < next_declaration_warning_) return std::nullopt;
  next_declaration_warning_ = now + kWarnEvery;
  actions.warnings.push_back(absl::StrCat(
      declarations_.describe_pending(), " for ", absl::FormatDuration(absl::Floor(now - *since, absl::Seconds(1))),
      "; a rank declares a tensor with its first push_pull of it: ", advice_about(*declarations_.pending())));
  return std::nullopt;
}

// Describes the tensor that `rank` waits for, and the rank that has not declared that one, if there is one.
std::string DeadlockDetector::describe_wait(uint32_t rank) const {
  const std::string& tensor = stalls_.waiting(rank)->tensor;
  std::string text = absl::StrCat(roster_.name(rank), " waits for tensor '", tensor, "'");
  for (uint32_t other = 0; other < roster_.ranks(); ++other) {
    if (other == rank || declarations_.has_declared(other, tensor)) continue;
    if (!declarations_.contributes(other, tensor)) continue;
    return absl::StrCat(
        text, ", which ", roster_.name(other),
        " has not begun: all ranks must begin the same push_pulls, and wait for them in the same order, "
        "or begin all of them before they wait");
  }
  return absl::StrCat(text, "; ", advice_about(*declarations_.pending()));
}

// Returns whether each of these ranks has waited for a sum for longer than declare_timeout.
bool DeadlockDetector::are_waiting(const std::vector<uint32_t>& ranks, absl::Duration now) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
    const std::optional<OldestPushPull>& waiting = stalls_.waiting(rank);
    return waiting.has_value() && now - waiting->since > options_.declare_timeouts.waiting;
  });
}

std::optional<Failure> DeadlockDetector::check_stalls(absl::Duration now, Actions& actions) {
  // Ranks may wait for a pending tensor; check_declarations() warns of that.
  if (declarations_.oldest_pending().has_value()) return std::nullopt;
  if (const std::optional<std::string> tensor = stalls_.ask(now); tensor.has_value()) {
    for (uint32_t rank = 0; rank < roster_.ranks(); ++rank) {
      if (declarations_.contributes(rank, *tensor)) {
        send(roster_, rank, Inquire{*tensor}, actions);
      } else {
        stalls_.on_begun(rank, *tensor, Stalls::kAll);
      }
    }
  }
  if (std::optional<std::string> warning = stalls_.warning(now)) actions.warnings.push_back(*std::move(warning));
  const std::optional<Stalls::Circle> circle = stalls_.circle(now, options_.declare_timeouts.waiting);
  if (!circle.has_value()) return std::nullopt;
  return Failure{absl::DeadlineExceededError(absl::StrCat(
                     "ranks wait for each other: ", circle->text,
                     "; all ranks must wait for tensors in the same order, or begin all of them before they wait")),
                 circle->rank};
}

// A rank leaves cleanly only when every rank has the results of all contributions of that rank. So if another rank
// waits for a sum after that, the sum lacks a contribution of the rank that left.
std::optional<Failure> DeadlockDetector::check_leavers(absl::Duration first_leave_at, absl::Duration now) const {
  const std::optional<uint32_t> waiting = stalls_.longest();
  if (!waiting.has_value()) return std::nullopt;
  // The last report of a silent rank may be out of date: the rank may have its result already.
  if (now - roster_[*waiting].last_heard > kSilent) return std::nullopt;
  // Results that existed when the rank left may still be on their way.
  const absl::Duration began = std::max(first_leave_at, stalls_.waiting(*waiting)->since);
  if (now - began < options_.deadline / 2) return std::nullopt;
  std::optional<uint32_t> left;
  for (uint32_t rank = 0; rank < roster_.ranks(); ++rank) {
    if (roster_[rank].state != Seat::State::kLeft) continue;
    if (!declarations_.contributes(rank, stalls_.waiting(*waiting)->tensor)) continue;
    if (!left.has_value() || efficiency_.latest(rank).steps < efficiency_.latest(*left).steps) left = rank;
  }
  if (!left.has_value()) return std::nullopt;
  return Failure{absl::UnavailableError(describe_early_leave(*left, *waiting)), *left, true};
}

std::string DeadlockDetector::describe_early_leave(uint32_t left, uint32_t waiting) const {
  const uint64_t steps = efficiency_.latest(left).steps;
  const std::optional<OldestPushPull>& what = stalls_.waiting(waiting);
  return absl::StrCat(roster_.name(left), " finished",
                      steps == 0 ? "" : absl::StrCat(" after ", counted(steps, "step")), "; ", roster_.name(waiting),
                      " is at step ", efficiency_.latest(waiting).steps + 1,
                      what.has_value() ? absl::StrCat(", and waits for tensor '", what->tensor, "'") : "",
                      ": every rank must take part in every step");
}

}  // namespace gleaner::coordinator
