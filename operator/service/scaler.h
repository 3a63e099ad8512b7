// Scaler runs the autoscaler. It judges all jobs once a second, queries Prometheus less often, and wakes the reconciler
// of a job whose summers should change. The reconciler gets the job's ScalingRequest from request().
//
// Scaler has two threads: "gln-scale", and "gln-prometheus" if there is a Prometheus. So a Prometheus that hangs delays
// no decision; only the age of its readings grows. Thread safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "common/base/periodic.h"
#include "common/kube/work_queue.h"
#include "coordinator/service/service.h"
#include "operator/autoscale/autoscaler.h"
#include "operator/service/cluster.h"
#include "operator/service/measurements.h"
#include "operator/service/prometheus_client.h"
#include "operator/service/standing_request.h"

namespace gleaner::operation {

struct ScalingOptions {
  autoscale::Settings settings;
  PrometheusClient::Options prometheus;  // without a URL only the bandwidth model decides
  Queries queries;                       // replace the default queries of the same names
  absl::Duration interval = absl::Seconds(15);
  absl::Duration window = absl::Minutes(1);
};

class Scaler {
 public:
  // All references must outlive the Scaler.
  struct Parts {
    Env env;
    Cluster& cluster;
    coordinator::Service& sessions;
    kube::WorkQueue& queue;
    ScalingOptions options;
  };
  static absl::StatusOr<std::unique_ptr<Scaler>> start(const Parts& parts);

  // Returns the request for a job, by its key; nullopt: the job was not judged yet, or may not be scaled.
  std::optional<reconcile::ScalingRequest> request(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit Scaler(const Parts& parts);
  void run_round() ABSL_LOCKS_EXCLUDED(mutex_);
  void poll_prometheus();

  const Parts parts_;
  autoscale::Autoscaler autoscaler_;  // used by gln-scale only
  std::unique_ptr<PrometheusClient> client_;
  std::unique_ptr<Measurements> measurements_;
  mutable absl::Mutex mutex_;
  std::map<std::string, StandingRequest> standing_ ABSL_GUARDED_BY(mutex_);  // by job key
  // Declared last, since their threads use all members above.
  std::optional<Periodic> rounds_, polls_;
};

}  // namespace gleaner::operation
