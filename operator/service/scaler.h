// Runs the autoscaler: looks at all jobs once a second, asks Prometheus less often, and wakes the reconciler of a job
// whose summers should change. What it wants of each job it hands out as a Wish.
//
// Threads of its own: "gln-scale", and "gln-prometheus" where there is one, so that a Prometheus that hangs delays
// nothing: its metrics just grow old. Thread safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/env.h"
#include "common/kube/work_queue.h"
#include "operator/autoscale/autoscaler.h"
#include "operator/coordinator/service.h"
#include "operator/service/cluster.h"
#include "operator/service/measurements.h"
#include "operator/service/prometheus_client.h"
#include "operator/service/scaling_view.h"

namespace gleaner::operation {

struct ScalingOptions {
  autoscale::Settings settings;
  PrometheusClient::Options prometheus;  // without a URL: by the model alone
  Queries queries;                       // in place of the defaults of these names
  absl::Duration interval = absl::Seconds(15);
  absl::Duration window = absl::Minutes(1);
};

class Scaler {
 public:
  // All of these outlive it.
  struct Parts {
    Env env;
    Cluster& cluster;
    coordinator::Service& sessions;
    kube::WorkQueue& queue;
    ScalingOptions options;
  };
  static absl::StatusOr<std::unique_ptr<Scaler>> start(const Parts& parts);
  ~Scaler();

  std::optional<reconcile::Wish> wish(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Standing {
    reconcile::Wish wish;
    absl::Duration since;                                // the addition
    absl::flat_hash_map<uint32_t, absl::Duration> told;  // removals, and since when
  };

  explicit Scaler(const Parts& parts);
  void look() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the reconciler has something to do.
  static bool follow(const types::TrainingJob& job, ScalingView view, autoscale::Verdict verdict, absl::Duration now,
                     Standing& standing);
  void ask();

  const Parts parts_;
  autoscale::Autoscaler autoscaler_;  // of gln-scale
  std::unique_ptr<PrometheusClient> client_;
  std::unique_ptr<Measurements> measurements_;
  absl::Notification stopping_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Standing> standing_ ABSL_GUARDED_BY(mutex_);  // by job
  std::thread looks_, asks_;
};

}  // namespace gleaner::operation
