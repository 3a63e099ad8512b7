// Measurements holds the values of Prometheus for jobs and machines, for the autoscaler. Each reading has an age.
//
// Thread safe. poll() waits for Prometheus; the other functions do not wait.
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

// Prometheus expressions by name. $window is replaced by the time over which rates are taken. Results have the labels
// `namespace` and `trainingjob`, or `node`.
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
  // `clock` and `client` must outlive this object.
  Measurements(const Clock& clock, PrometheusClient& client, const Queries& queries, absl::Duration window);

  // Evaluates all queries and returns the first error. If a query fails, its earlier readings stay, and their age
  // grows.
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
    absl::Duration at;                    // when the query was sent
    std::map<std::string, double> value;  // by job key or node
  };
  std::optional<autoscale::Reading> reading(const char* query, const char* age, const std::string& key) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  PrometheusClient& client_;
  const Queries queries_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Answer> answers_ ABSL_GUARDED_BY(mutex_);  // by name of the query
};

}  // namespace gleaner::operation
