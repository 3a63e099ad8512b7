#include "cli/cluster/access.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/self/own_command.h"
#include "common/kube/credentials.h"
#include "common/kube/process.h"

namespace gleaner::cli {
namespace {

// Distinguishes 'trainingjobs.gleaner.dev "digits" not found' from a NotFound for a resource that the server does not
// have.
bool is_missing_object(const absl::Status& status, const std::string& name) {
  return absl::IsNotFound(status) && !name.empty() &&
         absl::StrContains(status.message(), absl::StrCat("\"", name, "\""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterAccess>> ClusterAccess::open(const ClusterFlags& flags) {
  if (flags.all_namespaces && !flags.ns.empty()) {
    return absl::InvalidArgumentError("give either --namespace or --all-namespaces");
  }
  kube::prepare_process();
  auto access = std::unique_ptr<ClusterAccess>(new ClusterAccess());
  access->system_ = std::make_unique<SystemEnv>(LogOptions{"gleaner", LogLevel::kError});
  GLN_ASSIGN_OR_RETURN(kube::Credentials credentials,
                       kube::find_credentials(flags.kube.kubeconfig, flags.kube.context));
  if (!flags.all_namespaces) access->ns_ = flags.ns.empty() ? credentials.ns : flags.ns;
  kube::Client::Options options;
  options.credentials = std::move(credentials);
  GLN_ASSIGN_OR_RETURN(access->client_, kube::Client::create(access->system_->env(), std::move(options)));
  return access;
}

absl::Status explain_failure(const absl::Status& status, const kube::Resource& resource, const std::string& ns,
                             const std::string& name) {
  const std::string server_said = absl::StrCat(" (the API server: ", status.message(), ")");
  if (is_missing_object(status, name)) {
    return absl::NotFoundError(absl::StrCat("there is no ", resource.kind, " '", name, "' in namespace '", ns, "'; `",
                                            own_command("status -A"), "` lists all jobs"));
  }
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(
        absl::StrCat("this cluster does not know ", resource.plural, resource.group.empty() ? "" : ".", resource.group,
                     ": is Gleaner installed there? If so, are its CRDs as new as this program? See "
                     "docs/install-kubernetes.md",
                     server_said));
  }
  if (absl::IsPermissionDenied(status)) {
    return absl::PermissionDeniedError(absl::StrCat("no access: ", status.message()));
  }
  if (absl::IsUnauthenticated(status)) {
    return absl::UnauthenticatedError(
        absl::StrCat("the API server does not accept the kubeconfig's credentials: have they expired?", server_said));
  }
  return absl::Status(status.code(), absl::StrCat("can't read ", resource.plural, ": ", status.message()));
}

absl::StatusOr<kube::Object> ClusterAccess::job_object(const std::string& name) {
  auto object = client_->get(kube::training_jobs(), ns_, name);
  if (!object.ok()) return explain_failure(object.status(), kube::training_jobs(), ns_, name);
  return object;
}

absl::StatusOr<std::optional<kube::Object>> ClusterAccess::plan_object(const std::string& name) {
  auto object = client_->get(kube::reduction_plans(), ns_, name);
  if (object.ok()) return *std::move(object);
  if (is_missing_object(object.status(), name)) return std::nullopt;
  return explain_failure(object.status(), kube::reduction_plans(), ns_, name);
}

absl::StatusOr<std::vector<kube::Object>> ClusterAccess::list(const kube::Resource& resource, const std::string& ns,
                                                              const std::string& labels, const std::string& fields) {
  auto objects = client_->list(resource, {ns, labels, fields});
  if (!objects.ok()) return explain_failure(objects.status(), resource, ns, "");
  return std::move(objects->items);
}

absl::StatusOr<api::TrainingJob> ClusterAccess::job(const std::string& name) {
  GLN_ASSIGN_OR_RETURN(const kube::Object object, job_object(name));
  return api::parse_training_job(object);
}

absl::StatusOr<std::optional<api::ReductionPlan>> ClusterAccess::plan(const std::string& name) {
  GLN_ASSIGN_OR_RETURN(const std::optional<kube::Object> object, plan_object(name));
  if (!object) return std::nullopt;
  GLN_ASSIGN_OR_RETURN(api::ReductionPlan plan, api::parse_reduction_plan(*object));
  return plan;
}

absl::StatusOr<api::Topology> ClusterAccess::topology() {
  const auto object = client_->get(kube::topologies(), "", api::kTopologyName);
  if (object.ok()) {
    GLN_ASSIGN_OR_RETURN(api::Topology topology, api::parse_topology(*object));
    // The operator writes conditions with every status. An administrator may create the object before.
    if (!topology.status.conditions.empty()) return topology;
  } else if (!is_missing_object(object.status(), api::kTopologyName)) {
    return explain_failure(object.status(), kube::topologies(), "", api::kTopologyName);
  }
  return absl::FailedPreconditionError(
      "the operator has not written the Topology of this cluster: does it run, and is it of this version? See "
      "`kubectl get pods -A -l app.kubernetes.io/name=gleaner-operator`");
}

}  // namespace gleaner::cli
