// StepRunner carries out one step of a decision, and returns its outcome.
//
// Every write may happen twice: pods have fixed names, other objects are applied, and a job's status is written only if
// the job is unchanged since it was observed. Thread safe: several threads may call it at the same time for different
// jobs, but not for the same job.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "common/kube/events.h"
#include "operator/reconcile/observation.h"
#include "operator/reconcile/refusal.h"
#include "operator/reconcile/steps.h"
#include "operator/service/coordinated_sessions.h"
#include "operator/service/creation_backoff.h"
#include "operator/service/identity_store.h"
#include "operator/service/job_metrics.h"
#include "operator/service/report_writer.h"

namespace gleaner::operation {

struct StepOutcome {
  absl::Status failure;
  // The API server refused an object that the start of the workers needs. This is no failure of the step: the status
  // shows the refusal, and the operator tries again after a pause.
  std::optional<reconcile::Refusal> refusal;
  std::vector<reconcile::EventNote> events;     // to record, also if the step failed
  std::optional<absl::Duration> requeue_after;  // decide again after this time even if nothing changes
};

class StepRunner {
 public:
  // All references must outlive the runner.
  struct Parts {
    Env env;
    kube::Client& client;
    IdentityStore& identities;
    CoordinatedSessions& sessions;
    ReportWriter& reports;
    CreationBackoff& backoff;
    kube::EventRecorder& events;
    JobMetrics& metrics;
  };
  explicit StepRunner(const Parts& parts) : parts_(parts) {}

  // `observation` is the one that led to the decision.
  StepOutcome run(const reconcile::Observation& observation, const reconcile::Action& action) const;

  // Records Events about `job`, and counts those about changes of its summers.
  void record(const api::TrainingJob& job, const std::vector<reconcile::EventNote>& events) const;

 private:
  const Parts parts_;
};

}  // namespace gleaner::operation
