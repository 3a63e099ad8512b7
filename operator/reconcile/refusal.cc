#include "operator/reconcile/refusal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/api/text.h"
#include "common/base/utf8.h"
#include "operator/reconcile/status_update.h"

namespace gleaner::reconcile {
namespace {

// Bytes of the API server's answer in an Event's text, so that a condition takes the whole text.
constexpr size_t kMaxQuoted = api::kMaxMessage - 256;

// Returns the `decided` status with the conditions after a refusal.
api::TrainingJobStatus refused_status(const api::TrainingJob& job, const api::TrainingJobStatus& decided,
                                      const EventNote& event, absl::Time now) {
  StatusUpdate update(job, now);
  update.status = decided;
  update.set_condition("Created", false, event.reason, event.message);
  if (!update.holds("Running")) update.set_condition("Running", false, event.reason, event.message);
  update.status.phase = phase_of(update.status.conditions);
  return std::move(update.status);
}

bool shows(const api::TrainingJobStatus& status, const EventNote& refusal) {
  const api::Condition* created = api::find_condition(status.conditions, "Created");
  return created != nullptr && created->reason == refusal.reason && created->message == refusal.message;
}

}  // namespace

std::string refusal_reason(const std::string& kind, const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) return "QuotaExceeded";
  return absl::StrCat(kind, absl::IsAlreadyExists(why) ? "NameTaken" : "Refused");
}

EventNote refusal_event(const std::string& kind, const absl::Status& why) {
  const bool quota = absl::IsResourceExhausted(why);
  const std::string what = absl::IsAlreadyExists(why) ? "" : absl::StrCat("the API server refuses a ", kind, ": ");
  return {true, refusal_reason(kind, why),
          absl::StrCat(what, shortened(why.message(), kMaxQuoted),
                       quota ? "; tried again until the quota has room" : "; tried again with increasing pauses"),
          ""};
}

Decision refused_start(const Observation& observation, const Decision& decision, size_t refused,
                       const Refusal& refusal) {
  const EventNote event = refusal_event(refusal.kind, refusal.why);
  std::vector<Step> steps = decision.steps();
  for (size_t i = refused; i < steps.size(); ++i) {
    auto* const write = std::get_if<WriteStatus>(&steps[i].action);
    if (write != nullptr) *write = {refused_status(observation.job, write->status, event, refusal.at), false};
  }
  if (!shows(observation.job.status, event)) steps.push_back({RecordEvents{{event}}, {}});
  return {std::move(steps), std::min(refusal.pause, decision.requeue_after().value_or(absl::InfiniteDuration()))};
}

}  // namespace gleaner::reconcile
