// HoldLimit decides how long a worker holds push_pulls for a change of strategy (exchange/strategies.h) while there is
// no coordinator. Pure: events in, a status out.
//
// A worker holds push_pulls from the time at which the change has been prepared until it is in force or withdrawn.
// Without a coordinator only another worker that follows the new plan can end the hold (member/membership.h). If no
// worker does, nobody knows which strategy to use, and the session fails: after the deadline if no coordinator can
// return, else after plan_timeout, as a tensor waits for its plan.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace gleaner::supervision {

class HoldLimit {
 public:
  HoldLimit(absl::Duration deadline, absl::Duration plan_timeout) : deadline_(deadline), plan_timeout_(plan_timeout) {}

  void on_coordinator_lost() { coordinator_ = Coordinator::kAway; }
  void on_coordinator_found() { coordinator_ = Coordinator::kThere; }
  void on_coordinator_gone() { coordinator_ = Coordinator::kGone; }

  // To be called every few milliseconds. `held`: the name of a tensor whose push_pulls are held; empty: none is.
  // Returns Unavailable once the session has to end.
  absl::Status tick(const std::string& held, absl::Duration now) {
    if (held.empty() || coordinator_ == Coordinator::kThere) {
      since_.reset();
      return absl::OkStatus();
    }
    if (!since_.has_value()) since_ = now;
    const absl::Duration limit = coordinator_ == Coordinator::kGone ? deadline_ : plan_timeout_;
    if (now - *since_ <= limit) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the coordinator was lost during a change of strategy: tensor '", held,
                                               "' has waited for ", absl::FormatDuration(limit),
                                               " to learn whether the change is in force; restart the job"));
  }

 private:
  enum class Coordinator { kThere, kAway, kGone };

  const absl::Duration deadline_;
  const absl::Duration plan_timeout_;
  Coordinator coordinator_ = Coordinator::kThere;
  std::optional<absl::Duration> since_;  // when push_pulls were first held without a coordinator
};

}  // namespace gleaner::supervision
