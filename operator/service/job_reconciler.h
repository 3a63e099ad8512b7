// The reconciler of TrainingJobs: observes, has reconcile::decide() decide, and carries that out.
//
// Everything it writes may be written twice: pods have fixed names, the rest is applied, and a job's status only if the
// job is still as it was observed. It keeps in memory what a new leader can find again: which sessions it coordinates.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "common/kube/controller.h"
#include "common/kube/events.h"
#include "operator/coordinator/service.h"
#include "operator/reconcile/decide.h"
#include "operator/service/cluster.h"
#include "operator/service/identity_store.h"
#include "operator/service/job_metrics.h"

namespace gleaner::operation {

class JobReconciler final : public kube::Reconciler {
 public:
  // All of these outlive it.
  struct Parts {
    Env env;
    kube::Client& client;
    Cluster& cluster;
    coordinator::Service& sessions;
    IdentityStore& identities;
    kube::EventRecorder& events;
    JobMetrics& metrics;
    std::function<std::optional<reconcile::Wish>(const std::string& job)> wishes;
    reconcile::Settings settings;
  };
  explicit JobReconciler(Parts parts);

  kube::Result reconcile(const std::string& key) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What this process knows of a job's session beyond what the service says.
  struct Session {
    std::string name;
    std::string job_uid;
    std::optional<absl::Duration> ended;  // when its outcome was first seen
    using Member = std::pair<coordinator::Role, uint32_t>;
    absl::flat_hash_set<Member> told;                            // whose end the service knows
    absl::flat_hash_set<uint32_t> released;                      // summers
    absl::flat_hash_map<Member, absl::Duration> bandwidth_told;  // when
    absl::Duration reported = -absl::InfiniteDuration();
    std::string status_written;  // without figures that change all the time
  };

  // The steps of carrying a decision out, in order. Each is harmless when repeated.
  absl::Status carry_out(const types::TrainingJob& job, const reconcile::Observed& observed,
                         reconcile::Decision& decision);
  absl::StatusOr<bool> confirm(const types::TrainingJob& job, const reconcile::Decision& decision);
  absl::Status make_summers(const types::TrainingJob& job, reconcile::Decision& decision);
  void tell_session(Session& session, reconcile::Decision& decision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status make_pods(const types::TrainingJob& job, reconcile::Decision& decision);
  absl::Status release_pods(const types::TrainingJob& job, const reconcile::Decision& decision);
  absl::Status write_plan(const reconcile::Observed& observed, const types::ReductionPlan& plan);
  absl::Status keep_session(const types::TrainingJob& job, reconcile::Decision& decision);
  void end_session(const std::string& key, const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status remove_pods(const types::TrainingJob& job, const reconcile::Decision& decision);
  absl::Status write_status(const types::TrainingJob& job, const types::TrainingJobStatus& status);
  void record_events(const types::TrainingJob& job, const reconcile::Decision& decision);
  void observe_session(const types::TrainingJob& job, reconcile::Observed& observed) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_due(const std::string& key, const std::string& lasting) ABSL_LOCKS_EXCLUDED(mutex_);

  Parts parts_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);  // by job key
};

}  // namespace gleaner::operation
