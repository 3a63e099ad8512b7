// What Prometheus says of jobs and machines, for the autoscaler: asked for every now and then, kept with its age.
//
// Thread safe. poll() blocks on Prometheus; readings do not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "operator/autoscale/autoscale.h"
#include "operator/service/prometheus_client.h"

namespace gleaner::operation {

// The expressions by name. $window stands for the time that rates are taken over. Values by labels `namespace` and
// `trainingjob`, or `node`.
using Queries = std::map<std::string, std::string>;
inline constexpr char kStepSeconds[] = "step_seconds";
inline constexpr char kExposedSeconds[] = "exposed_seconds";
inline constexpr char kGoodput[] = "goodput";
inline constexpr char kJobAge[] = "job_age";  // seconds since the job's metrics were scraped
inline constexpr char kSpareCpus[] = "spare_cpus";
inline constexpr char kSpareBits[] = "spare_bits_per_second";
inline constexpr char kNodeAge[] = "node_age";
Queries default_queries();

class Measurements {
 public:
  // `client` outlives it.
  Measurements(const Clock& clock, PrometheusClient& client, const Queries& queries, absl::Duration window);

  // Asks all there is to ask. What fails leaves the readings from before, which grow old; the first error is returned.
  absl::Status poll() ABSL_LOCKS_EXCLUDED(mutex_);

  struct OfJob {
    std::optional<autoscale::Reading> step_seconds, exposed_seconds, goodput;
  };
  OfJob job(const std::string& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  struct OfNode {
    std::optional<autoscale::Reading> spare_cpus, spare_bits_per_second;
  };
  OfNode node(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Answer {
    absl::Duration at;                    // when it was asked for
    std::map<std::string, double> value;  // by job key or node
  };
  std::optional<autoscale::Reading> reading(const char* query, const char* age, const std::string& key) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  PrometheusClient& client_;
  const Queries queries_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Answer> answers_ ABSL_GUARDED_BY(mutex_);  // by query
};

}  // namespace gleaner::operation
