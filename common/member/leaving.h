// Leaving holds a member's request to leave the job. It decides which messages concern a member that leaves, and when
// the member leaves without an answer. Pure; belongs to one thread.
//
// A member that leaves cleanly (its status is OK) may be needed until the coordinator has answered, so it follows plans
// until then. A plan that is committed in the meantime may need a worker: the request of the worker then ends, and the
// worker asks again when it has nothing in flight under that plan. A summer's request does not end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/control/member_messages.h"

namespace gleaner::member {

class Leaving {
 public:
  explicit Leaving(bool is_summer) : is_summer_(is_summer) {}

  // `again`: the member joins the next round after leaving. `timeout`: how long to wait for a coordinator that can't be
  // reached.
  void request(const absl::Status& status, bool again, absl::Duration timeout, absl::Duration now) {
    request_ = Request{status, again, now, timeout};
  }

  bool is_requested() const { return request_.has_value(); }
  // Returns whether the listener is to receive plans.
  bool follows_plans() const { return !is_requested() || request_->status.ok(); }
  // Returns whether the listener is to receive the news that the coordinator needs the member no more.
  bool is_told_of_goodbye() const { return !is_requested() || is_summer_; }
  // Returns the message to the coordinator. There must be a request. `epoch`: of the plan that the member follows.
  control::Leave message(uint32_t epoch) const { return {request_->status, epoch, request_->again}; }

  // Records that a plan was committed. Returns whether this has ended the request, so that the member stays.
  bool on_commit() {
    if (is_summer_ || !is_requested() || !request_->status.ok()) return false;
    request_.reset();
    return true;
  }
  // Records that this process did not run for `pause`. That time does not count.
  void on_pause(absl::Duration pause) {
    if (is_requested()) request_->since += pause;
  }

  // Returns whether a worker has waited long enough for an answer, and leaves without it. It waits longer for a
  // coordinator that is connected: the coordinator may only be slow, and would count a worker that disappears as lost.
  bool has_waited_for_connected(absl::Duration deadline, absl::Duration now) const {
    return waits_for_answer() && now - request_->since > deadline;
  }
  // `away_since`: when the coordinator was lost, if it was.
  bool has_waited_for_lost(std::optional<absl::Duration> away_since, absl::Duration now) const {
    return waits_for_answer() &&
           now - std::max(request_->since, away_since.value_or(request_->since)) > request_->timeout;
  }

 private:
  struct Request {
    absl::Status status;
    bool again = false;
    absl::Duration since;
    absl::Duration timeout;
  };
  bool waits_for_answer() const { return is_requested() && !is_summer_; }

  const bool is_summer_;
  std::optional<Request> request_;
};

}  // namespace gleaner::member
