// Names of a job's children, and what the outside calls its coordinator session. The same job and attempt always give
// the same names: that is what makes creating them twice harmless.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::reconcile {

inline constexpr char kWorker[] = "worker";  // values of types::kRoleLabel
inline constexpr char kSummer[] = "summer";
inline constexpr char kGangGate[] = "gleaner.dev/gang";             // scheduling gate of a gang that is not complete
inline constexpr char kBootstrapConfigMap[] = "gleaner-bootstrap";  // ca.crt, in every namespace with jobs
inline constexpr char kTokenAudience[] = "gleaner.dev";             // of the members' service account tokens

// "digits-worker-3", and from the second attempt on "digits-worker-3-r1".
std::string pod_name(absl::string_view job, absl::string_view role, uint32_t index, uint32_t attempt);

// What members put into GLEANER_JOB: "namespace/job/attempt".
std::string session_name(absl::string_view job_key, uint32_t attempt);

}  // namespace gleaner::reconcile
