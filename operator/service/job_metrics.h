// JobMetrics publishes gleaner_job_* and gleaner_jobs (docs/metrics.md). A job's series exist as long as its
// TrainingJob. Thread safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "coordinator/service/service.h"

namespace gleaner::operation {

class JobMetrics {
 public:
  explicit JobMetrics(prometheus::Registry& registry);

  // `session` may be null.
  void update(const api::TrainingJob& job, const api::TrainingJobStatus& status, const coordinator::JobState* session)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `lasting`: the time for which reconciliations of this job fail; 0: the last one did not. Has no effect before the
  // first update().
  void set_failing(const std::string& key, absl::Duration lasting) ABSL_LOCKS_EXCLUDED(mutex_);
  // `change`: SummerAdded, SummerRemoved, SummerLeft, SummerLost or SummerRefused.
  void count_change(const api::TrainingJob& job, const std::string& change, const std::string& cause)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void remove(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Gauges = prometheus::Family<prometheus::Gauge>;
  struct SummerGauges {
    Gauges* taking_part;
    Gauges* wanted;
    Gauges* planned;
    Gauges* reason;
  };
  // One job's series. A value that is not known has no series.
  struct Series {
    prometheus::Labels labels;
    std::string phase;
    std::vector<std::pair<Gauges*, prometheus::Gauge*>> gauges;
    std::set<std::string> strategies;  // the strategies that have a series
    std::string reason;                // the reason for the number of summers wanted, which has a series
    std::vector<prometheus::Counter*> changes;
    prometheus::Counter* steps = nullptr;
    double steps_seen = 0;
  };

  void set(Series& series, Gauges* family, double value, const prometheus::Labels& more = {});
  void unset(Series& series, Gauges* family, const prometheus::Labels& more = {});
  // Sets a value above 0; removes the series otherwise.
  void show(Series& series, Gauges* family, double value);
  void enter_phase(Series& series, const std::string& phase);
  void show_summers(Series& series, const api::SummersStatus& summers);
  void follow_session(Series& series, const coordinator::Summary& summary);
  void show_strategies(Series& series, const std::vector<plan::StrategyShare>& strategies);

  Gauges* const jobs_;
  Gauges* const info_;
  Gauges* const phase_;
  Gauges* const workers_;
  const SummerGauges summers_;
  Gauges* const epoch_;
  Gauges* const restarts_;
  Gauges* const attempt_;
  Gauges* const failing_;
  Gauges* const strategy_bytes_;
  Gauges* const step_bytes_;
  Gauges* const step_dense_bytes_;
  Gauges* const communication_;
  Gauges* const bound_;
  Gauges* const bound_without_summers_;
  Gauges* const goodput_;
  Gauges* const efficiency_;
  prometheus::Family<prometheus::Counter>* const steps_;
  prometheus::Family<prometheus::Counter>* const changes_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Series> series_ ABSL_GUARDED_BY(mutex_);  // by job key
};

}  // namespace gleaner::operation
