// DecisionExecutor carries out the steps of a Decision, and returns their outcome.
//
// Every write may happen twice: pods have fixed names, other objects are applied, and a job's status is written only if
// the job is unchanged since it was observed. Thread safe: several threads may call it at the same time for different
// jobs, but not for the same job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "common/kube/events.h"
#include "operator/reconcile/decision.h"
#include "operator/reconcile/observed.h"
#include "operator/service/coordinated_sessions.h"
#include "operator/service/creation_backoff.h"
#include "operator/service/identity_store.h"
#include "operator/service/job_metrics.h"
#include "operator/service/report_writer.h"
#include "operator/service/steps.h"

namespace gleaner::operation {

struct Outcome {
  absl::Status failure;                         // the first error of a step, which usually explains the others
  size_t done = 0;                              // number of steps that were carried out and did not fail
  api::TrainingJobStatus status;                // as decided, or as changed after a pod was refused
  std::vector<reconcile::EventNote> events;     // to record: the Events of the decision, and of its steps
  std::optional<absl::Duration> requeue_after;  // reconcile again after this time even if nothing changes
  bool refused = false;  // the API server refused an object that the start of the workers needs; `status` says so
};

class DecisionExecutor {
 public:
  // All references must outlive the executor.
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
  explicit DecisionExecutor(const Parts& parts) : parts_(parts) {}

  Outcome carry_out(const reconcile::Observed& observed, const reconcile::Decision& decision) const;

 private:
  const Parts parts_;
};

}  // namespace gleaner::operation
