#include "operator/service/object_repair.h"

#include "absl/strings/match.h"
#include "operator/reconcile/pods.h"
#include "operator/service/ownership.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

// Returns whether `object` has all values of `wanted`. It may have more fields, since the API server adds defaults.
bool has_all(const json& object, const json& wanted) {
  if (wanted.is_object() && object.is_object()) {
    for (const auto& entry : wanted.items()) {
      const auto found = object.find(entry.key());
      if (found == object.end() || !has_all(*found, entry.value())) return false;
    }
    return true;
  }
  if (!wanted.is_array() || !object.is_array()) return object == wanted;
  if (object.size() != wanted.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!has_all(object[i], wanted[i])) return false;
  }
  return true;
}

// Returns whether the job has pods that need its Service. The job's reconciler creates the Service before the pods.
bool needs_service(const api::TrainingJob& job) {
  return !job.meta.deletion_time.has_value() && job.workers.replicas > 1 &&
         api::holds(job.status.conditions, "Created") && job.status.phase != "Succeeded" &&
         job.status.phase != "Failed";
}

}  // namespace

kube::Result ObjectRepair::reconcile(const std::string& key) {
  const absl::Status status = key == kTopologyKey           ? topology_.write()
                              : absl::StrContains(key, '/') ? repair_service(key)
                                                            : repair_bootstrap(key);
  if (!status.ok()) return kube::Retry{status};
  return kube::Done{};
}

absl::Status ObjectRepair::repair_bootstrap(const std::string& ns) {
  if (cluster_.has_jobs(ns)) return identities_.ensure_bootstrap(ns);
  const auto bootstrap = cluster_.bootstrap(ns);
  return bootstrap != nullptr && bootstrap->is_ours ? identities_.drop_bootstrap(ns) : absl::OkStatus();
}

absl::Status ObjectRepair::repair_service(const std::string& job_key) {
  const auto job = cluster_.job(job_key);
  if (job == nullptr || !needs_service(*job)) return absl::OkStatus();
  const json wanted = reconcile::worker_service(*job);
  const auto service = cluster_.service(job_key);
  if (service != nullptr && has_all(*service, wanted)) return absl::OkStatus();
  return ensure_worker_service(client_, *job);
}

IdentityStore::FindBootstrap find_bootstrap_in(const Cluster& cluster) {
  return [&cluster](const std::string& ns) -> std::optional<std::string> {
    const auto bootstrap = cluster.bootstrap(ns);
    if (bootstrap == nullptr) return std::nullopt;
    return bootstrap->ca;
  };
}

}  // namespace gleaner::operation
