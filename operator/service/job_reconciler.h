// JobReconciler observes a TrainingJob, calls reconcile::decide(), and has DecisionExecutor carry the decision out. Its
// only state in memory is the sessions that this process coordinates, the figures that it wrote last, the pauses after
// refusals, and the times at which failing reconciliations began to fail. A new leader can recover the sessions and the
// figures, and begins without pauses and without these times.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/base/env.h"
#include "common/kube/client.h"
#include "common/kube/controller.h"
#include "common/kube/events.h"
#include "coordinator/service/service.h"
#include "operator/reconcile/decide.h"
#include "operator/service/cluster.h"
#include "operator/service/coordinated_sessions.h"
#include "operator/service/creation_backoff.h"
#include "operator/service/decision_executor.h"
#include "operator/service/failing_jobs.h"
#include "operator/service/identity_store.h"
#include "operator/service/job_metrics.h"
#include "operator/service/report_writer.h"

namespace gleaner::operation {

class JobReconciler final : public kube::Reconciler {
 public:
  // All references must outlive the reconciler.
  struct Parts {
    Env env;
    kube::Client& client;
    Cluster& cluster;
    coordinator::Service& sessions;
    IdentityStore& identities;
    kube::EventRecorder& events;
    JobMetrics& metrics;
    // Returns the autoscaler's request for a job, by its key.
    std::function<std::optional<reconcile::ScalingRequest>(const std::string& job)> scaling_request;
    reconcile::PodSettings settings;
  };
  explicit JobReconciler(Parts parts);

  kube::Result reconcile(const std::string& key) override;

 private:
  kube::Result forget(const std::string& key);
  reconcile::Observation observe(const api::TrainingJob& job);
  void end_session(const std::string& key, const std::string& why);

  Parts parts_;
  CoordinatedSessions sessions_;
  ReportWriter reports_;
  CreationBackoff backoff_;
  FailingJobs failing_;
  DecisionExecutor executor_;
};

}  // namespace gleaner::operation
