// StatusUpdate is the job's status as one call of decide() changes it, with the Events to record and the time of the
// next decision. It is a value: each part of the decision takes one, adds to it, and returns it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "operator/reconcile/steps.h"

namespace gleaner::reconcile {

// The delay of a decision that waits for objects or members to change.
inline constexpr absl::Duration kSoon = absl::Seconds(1);

class StatusUpdate {
 public:
  // Begins with the status of `job`. `now` is the time of conditions that change.
  StatusUpdate(const api::TrainingJob& job, absl::Time now);

  const api::Condition* condition(const char* type) const;  // null: the status has no such condition
  bool holds(const char* type) const;                       // whether the condition is True
  void set_condition(const char* type, bool status, std::string reason, std::string message);
  // Sets the conditions Running, Stalled, SummerSlow, SummersRefused and RanksOutdated to False.
  void stop_running(const std::string& reason, const std::string& message);

  void add_event(bool warning, std::string reason, std::string message, std::string cause = "");
  // Adds a warning that is recorded even if the status can't be written.
  void add_urgent_event(std::string reason, std::string message);
  // The shortest of several delays applies.
  void requeue_after(absl::Duration delay);

  const std::vector<EventNote>& events() const { return events_; }
  std::optional<absl::Duration> requeue() const { return requeue_; }

  api::TrainingJobStatus status;  // each part of the decision sets the fields that it decides about

 private:
  absl::Time now_;
  int64_t generation_;
  std::vector<EventNote> events_;
  std::optional<absl::Duration> requeue_;
};

// Returns the job's phase, as `kubectl get tj` shows it.
std::string phase_of(const std::vector<api::Condition>& conditions);

}  // namespace gleaner::reconcile
