// Functions that make the names of a job's pods and of its coordinator session, and that tell whose they are. The same
// job and attempt always have the same names, so a second creation of an object does no harm.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "common/api/training_job.h"

namespace gleaner::reconcile {

inline constexpr char kWorker[] = "worker";  // values of api::kRoleLabel
inline constexpr char kSummer[] = "summer";
// Scheduling gate of workers until all worker pods of the attempt exist.
inline constexpr char kGangGate[] = "gleaner.dev/gang";
inline constexpr char kBootstrapConfigMap[] = "gleaner-bootstrap";  // holds ca.crt; in every namespace with jobs
// The label of objects that the operator makes, and its value.
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedBy[] = "gleaner";
inline constexpr char kTokenAudience[] = "gleaner.dev";  // audience of the members' service account tokens

// Returns "digits-worker-3" for attempt 0 and "digits-worker-3-r1" for attempt 1.
std::string pod_name(absl::string_view job, absl::string_view role, uint32_t index, uint32_t attempt);

// Returns "namespace/job/attempt", which members find in GLEANER_JOB.
std::string session_name(absl::string_view job_key, uint32_t attempt);

// Returns the ownerReferences of an object that is deleted with the job.
nlohmann::json owner_references(const api::TrainingJob& job);

}  // namespace gleaner::reconcile
