#include "operator/service/ownership.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kube/object.h"
#include "operator/reconcile/pods.h"
#include "operator/service/field_manager.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

// Returns the owner that controls the object, or else its first owner; null: it has none.
const json* find_owner(const json& object) {
  const json* owners = kube::find(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array() || owners->empty()) return nullptr;
  for (const json& owner : *owners) {
    const json* controller = kube::find(owner, {"controller"});
    if (controller != nullptr && *controller == true) return &owner;
  }
  return &owners->front();
}

std::string describe_owner(const json* owner, const api::TrainingJob& job) {
  if (owner == nullptr) return "has no owner";
  const std::string kind = kube::text_at(*owner, {"kind"});
  const std::string name = kube::text_at(*owner, {"name"});
  const bool is_earlier = kind == "TrainingJob" && name == job.meta.name;
  return absl::StrCat("belongs to ", is_earlier ? "an earlier " : "", kind, " ", name, is_earlier ? " (uid " : "",
                      is_earlier ? kube::text_at(*owner, {"uid"}) : "", is_earlier ? ")" : "");
}

}  // namespace

absl::Status check_owner(const kube::Object& object, const api::TrainingJob& job) {
  const json* owner = find_owner(object);
  if (owner != nullptr && kube::text_at(*owner, {"uid"}) == job.meta.uid) return absl::OkStatus();
  const bool is_leaving = !kube::text_at(object, {"metadata", "deletionTimestamp"}).empty();
  const std::string kind = kube::text_at(object, {"kind"});
  return absl::AlreadyExistsError(
      absl::StrCat("this job needs the name of ", kind, " ", kube::key_of(object), ", which ",
                   describe_owner(owner, job), is_leaving ? " and is being deleted" : "",
                   is_leaving ? ": wait until it is gone" : ": delete it, or create this job under another name"));
}

absl::Status check_pod_owner(kube::Client& client, const api::TrainingJob& job, const std::string& pod) {
  const auto object = client.get(kube::pods(), job.meta.ns, pod);
  if (absl::IsNotFound(object.status())) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(object.status());
  return check_owner(*object, job);
}

absl::Status ensure_worker_service(kube::Client& client, const api::TrainingJob& job) {
  const json service = reconcile::worker_service(job);
  absl::Status created = client.create(kube::services(), service).status();
  if (!absl::IsAlreadyExists(created)) return created;
  // An apply to a Service of others may meet no conflict, and would take it over.
  GLN_ASSIGN_OR_RETURN(const kube::Object present, client.get(kube::services(), job.meta.ns, job.meta.name));
  GLN_RETURN_IF_ERROR(check_owner(present, job));
  return client.apply(kube::services(), service, apply_options()).status();
}

}  // namespace gleaner::operation
