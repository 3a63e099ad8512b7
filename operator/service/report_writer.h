// ReportWriter writes the status of TrainingJobs, and their ReductionPlans. It writes figures, which change with every
// step, at most once per kFigureInterval, and all other changes immediately. Thread safe.
#pragma once

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/api/reduction_plan.h"
#include "common/api/training_job.h"
#include "common/base/env.h"
#include "common/kube/client.h"

namespace gleaner::operation {

class ReportWriter {
 public:
  // `client` must outlive the writer.
  ReportWriter(const Env& env, kube::Client& client) : env_(env), client_(client) {}

  // Replaces job.status by `status` if it differs. Aborted: the job has changed since it was observed.
  absl::Status write_status(const api::TrainingJob& job, const api::TrainingJobStatus& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Applies `plan` if it differs from the plan that was `observed`.
  absl::Status write_plan(const std::optional<api::ReductionPlan>& observed, const api::ReductionPlan& plan)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets the next figures be written immediately. To be called when the job's session ends.
  void forget(const std::string& job_key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The time of the last write in which only figures of a job's status changed, and the other fields at that time.
  struct FigureWrite {
    absl::Duration at;
    std::string lasting_fields;
  };
  bool may_write_plan_figures(const std::string& job_key) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool may_write_status_figures(const std::string& job_key, std::string lasting_fields) ABSL_LOCKS_EXCLUDED(mutex_);

  const Env env_;
  kube::Client& client_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, FigureWrite> written_ ABSL_GUARDED_BY(mutex_);  // by job key
};

}  // namespace gleaner::operation
