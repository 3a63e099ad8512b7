// Leadership holds the parts that only the leading operator runs: the sessions of all jobs, the reconciler, the
// autoscaler, and the EndpointSlice by which members find this replica.
//
// Create it when this replica gets the lease, and destroy it before the lease is released. Jobs keep running without
// it: their members look for the next leader.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/base/periodic.h"
#include "common/kube/client.h"
#include "common/kube/controller.h"
#include "common/kube/events.h"
#include "common/kube/work_queue.h"
#include "operator/service/cluster.h"
#include "operator/service/identity_store.h"
#include "operator/service/job_metrics.h"
#include "operator/service/job_reconciler.h"
#include "operator/service/object_repair.h"
#include "operator/service/operator_metrics.h"
#include "operator/service/options.h"
#include "operator/service/scaler.h"
#include "operator/service/token_authenticator.h"

namespace gleaner::operation {

class Leadership {
 public:
  struct Parts {
    Env env;
    const OperatorOptions& options;
    kube::Client& client;
    Cluster& cluster;
    kube::WorkQueue& queue;    // of jobs
    kube::WorkQueue& repairs;  // of ObjectRepair
    prometheus::Registry& registry;
    OperatorMetrics& metrics;
    std::string folder;  // private to this process, for key files
  };
  // `term` is higher than that of every earlier leadership.
  static absl::StatusOr<std::unique_ptr<Leadership>> begin(const Parts& parts, uint64_t term);
  ~Leadership();

 private:
  explicit Leadership(const Parts& parts);
  absl::Status start(uint64_t term);
  absl::Status publish_endpoint();
  // Has every namespace with jobs, or with a bootstrap ConfigMap, looked at.
  void repair_bootstraps();
  // Renews certificates and the EndpointSlice, and updates metrics. Runs on the thread of refreshes_.
  void refresh();
  void update_metrics();
  // Records an Event about an object of the operator's namespace if `status` says that the API server refuses it.
  void report_refusal(const std::string& api_version, const std::string& kind, const std::string& name,
                      const absl::Status& status);
  absl::StatusOr<reconcile::PodView> find_pod(const std::string& ns, const std::string& name);

  const Parts parts_;
  IdentityStore identities_;
  TokenAuthenticator authenticator_;
  JobMetrics job_metrics_;
  std::unique_ptr<kube::EventRecorder> events_;
  std::unique_ptr<coordinator::Service> sessions_;
  std::unique_ptr<Scaler> scaler_;
  std::unique_ptr<JobReconciler> reconciler_;
  std::unique_ptr<kube::Controller> controller_;
  std::unique_ptr<ObjectRepair> repair_;
  std::unique_ptr<kube::Controller> repair_controller_;
  std::optional<Periodic> refreshes_;
};

}  // namespace gleaner::operation
