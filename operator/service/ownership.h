// Functions about objects with the names that a job needs, and that belong to others.
#pragma once

#include "absl/status/status.h"
#include "common/api/training_job.h"
#include "common/kube/client.h"

namespace gleaner::operation {

// Checks that the job controls `object`, which exists under a name that the job needs. AlreadyExists: it does not; the
// message names the object and its owner, and says what to do.
absl::Status check_owner(const kube::Object& object, const api::TrainingJob& job);

// Reads the pod of this name and checks its owner, after its creation was answered with AlreadyExists. OK also if the
// pod is gone meanwhile.
absl::Status check_pod_owner(kube::Client& client, const api::TrainingJob& job, const std::string& pod);

// Ensures that the job's Service is as worker_service() says. AlreadyExists: a Service of its name belongs to others.
absl::Status ensure_worker_service(kube::Client& client, const api::TrainingJob& job);

}  // namespace gleaner::operation
