#include "operator/reconcile/status_update.h"

#include <utility>

namespace gleaner::reconcile {
std::string phase_of(const std::vector<api::Condition>& conditions) {
  for (const char* phase : {"Succeeded", "Failed", "Suspended", "Restarting", "Running"}) {
    if (api::holds(conditions, phase)) return phase;
  }
  return api::holds(conditions, "Created") ? "Starting" : "Pending";
}

StatusUpdate::StatusUpdate(const api::TrainingJob& job, absl::Time now)
    : status(job.status), now_(now), generation_(job.meta.generation) {}

const api::Condition* StatusUpdate::condition(const char* type) const {
  return api::find_condition(status.conditions, type);
}

bool StatusUpdate::holds(const char* type) const { return api::holds(status.conditions, type); }

void StatusUpdate::set_condition(const char* type, bool value, std::string reason, std::string message) {
  api::set_condition(status.conditions, {type, value, std::move(reason), std::move(message), now_, generation_}, now_);
}

void StatusUpdate::stop_running(const std::string& reason, const std::string& message) {
  set_condition("Running", false, reason, message);
  for (const char* trouble : {"Stalled", "SummerSlow", "SummersRefused", "RanksOutdated"}) {
    if (holds(trouble)) set_condition(trouble, false, reason, message);
  }
}

void StatusUpdate::add_event(bool warning, std::string reason, std::string message, std::string cause) {
  events_.push_back({warning, std::move(reason), std::move(message), std::move(cause)});
}

void StatusUpdate::add_urgent_event(std::string reason, std::string message) {
  events_.push_back({true, std::move(reason), std::move(message), "", true});
}

void StatusUpdate::requeue_after(absl::Duration delay) {
  if (!requeue_.has_value() || delay < *requeue_) requeue_ = delay;
}

}  // namespace gleaner::reconcile
