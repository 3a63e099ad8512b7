// The cluster, for commands that only read it: flags, connection, and errors that say what to do.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/kube/client.h"
#include "operator/types/reduction_plan.h"
#include "operator/types/training_job.h"

namespace CLI {
class App;
}

namespace gleaner::cli {

struct ClusterFlags {
  std::string ns, kubeconfig, context, output = "table";
  bool all_namespaces = false;
};

enum class Namespaces { kOne, kOneOrAll, kNone };
void add_cluster_flags(CLI::App& command, ClusterFlags& flags, Namespaces namespaces);
void add_connection_flags(CLI::App& command, ClusterFlags& flags, Namespaces namespaces);  // the same without -o

class ClusterAccess {
 public:
  // NotFound, InvalidArgument: there is no usable kubeconfig. Nothing is sent yet.
  static absl::StatusOr<std::unique_ptr<ClusterAccess>> open(const ClusterFlags& flags);

  const std::string& ns() const { return ns_; }  // what -n says, or the context; empty with -A
  absl::Time now() const { return system_->env().clock->now(); }

  // All calls below return errors for people: Gleaner not installed, no access, no answer.
  absl::StatusOr<kube::Object> job_object(const std::string& name);
  absl::StatusOr<std::optional<kube::Object>> plan_object(const std::string& name);  // none: not yet
  absl::StatusOr<std::vector<kube::Object>> list(const kube::Resource& resource, const std::string& ns,
                                                 const std::string& labels = "", const std::string& fields = "");

  absl::StatusOr<types::TrainingJob> job(const std::string& name);
  absl::StatusOr<std::optional<types::ReductionPlan>> plan(const std::string& name);
  // What can't be read is left out.
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

// Why a call about `resource` failed, and what to do. `name`: of the object that was asked for; empty: a list.
absl::Status explain_failure(const absl::Status& status, const kube::Resource& resource, const std::string& ns,
                             const std::string& name);

// Writes to standard output.
absl::Status print(const std::string& text);

}  // namespace gleaner::cli
