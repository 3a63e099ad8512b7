#include "operator/reconcile/names.h"

#include "absl/strings/str_cat.h"

namespace gleaner::reconcile {

std::string pod_name(absl::string_view job, absl::string_view role, uint32_t index, uint32_t attempt) {
  const std::string name = absl::StrCat(job, "-", role, "-", index);
  return attempt == 0 ? name : absl::StrCat(name, "-r", attempt);
}

std::string session_name(absl::string_view job_key, uint32_t attempt) { return absl::StrCat(job_key, "/", attempt); }

nlohmann::json owner_references(const api::TrainingJob& job) {
  return nlohmann::json::array({{{"apiVersion", api::kApiVersion},
                                 {"kind", "TrainingJob"},
                                 {"name", job.meta.name},
                                 {"uid", job.meta.uid},
                                 {"controller", true},
                                 {"blockOwnerDeletion", true}}});
}

}  // namespace gleaner::reconcile
