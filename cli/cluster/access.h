// ClusterAccess reads a Kubernetes cluster for the commands that change nothing in it. Its errors tell the user what to
// do.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster_flags.h"
#include "common/api/reduction_plan.h"
#include "common/api/topology.h"
#include "common/api/training_job.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/kube/client.h"

namespace gleaner::cli {

class ClusterAccess {
 public:
  // Reads the kubeconfig, without a request to the cluster. Errors: NotFound or InvalidArgument if there is no usable
  // kubeconfig.
  static absl::StatusOr<std::unique_ptr<ClusterAccess>> open(const ClusterFlags& flags);

  const std::string& ns() const { return ns_; }  // the namespace of -n, or else of the context; empty with -A
  absl::Time now() const { return system_->env().clock->now(); }

  // The functions below return the errors of explain_failure(). The functions for a plan return nothing if the job has
  // no plan yet.
  absl::StatusOr<kube::Object> job_object(const std::string& name);
  absl::StatusOr<std::optional<kube::Object>> plan_object(const std::string& name);
  absl::StatusOr<std::vector<kube::Object>> list(const kube::Resource& resource, const std::string& ns,
                                                 const std::string& labels = "", const std::string& fields = "");

  absl::StatusOr<api::TrainingJob> job(const std::string& name);
  absl::StatusOr<std::optional<api::ReductionPlan>> plan(const std::string& name);
  // FailedPrecondition: no operator has written the Topology.
  absl::StatusOr<api::Topology> topology();
  // Leaves out objects that `parse` rejects.
  template <typename T>
  absl::StatusOr<std::vector<T>> list_as(const kube::Resource& resource, const std::string& ns,
                                         absl::StatusOr<T> (*parse)(const kube::Object&),
                                         const std::string& labels = "") {
    GLN_ASSIGN_OR_RETURN(const std::vector<kube::Object> objects, list(resource, ns, labels));
    std::vector<T> values;
    for (const kube::Object& object : objects) {
      if (absl::StatusOr<T> value = parse(object); value.ok()) values.push_back(*std::move(value));
    }
    return values;
  }

 private:
  ClusterAccess() = default;
  std::unique_ptr<SystemEnv> system_;
  std::unique_ptr<kube::Client> client_;
  std::string ns_;
};

// Returns an error that tells the user why a call about `resource` failed and what to do: Gleaner is not installed,
// there is no access, or there is no answer. `name` is the requested object; empty: a list.
absl::Status explain_failure(const absl::Status& status, const kube::Resource& resource, const std::string& ns,
                             const std::string& name);

}  // namespace gleaner::cli
