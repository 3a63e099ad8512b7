// A Refusal is the API server's answer that it does not admit an object: a quota, an admission webhook or a policy
// stands against it. Pure functions say how the decision goes on.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "operator/reconcile/decision.h"
#include "operator/reconcile/observation.h"

namespace gleaner::reconcile {

struct Refusal {
  std::string kind;      // of the object, such as "Pod"
  absl::Status why;      // the API server's answer
  absl::Time at;         // when the API server answered
  absl::Duration pause;  // the operator tries again after this time
};

// Returns the decision that replaces `decision` after the API server has refused a worker's pod, or an object that the
// workers' pods need. It has the same steps in the same places. A status that is to be written after the step at place
// `refused` shows the refusal. An Event tells it unless the job's status shows the same refusal already. The decision
// does not fail: the operator tries again after the pause.
Decision refused_start(const Observation& observation, const Decision& decision, size_t refused,
                       const Refusal& refusal);

// Returns the reason of such a refusal, in conditions, Events and metrics: "QuotaExceeded", "PodRefused", or
// "PodNameTaken" for AlreadyExists, which says that an object of this name belongs to others.
std::string refusal_reason(const std::string& kind, const absl::Status& why);

// Returns the Event about an object of this kind that the API server has refused.
EventNote refusal_event(const std::string& kind, const absl::Status& why);

}  // namespace gleaner::reconcile
