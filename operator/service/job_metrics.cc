#include "operator/service/job_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gleaner::operation {
namespace {

constexpr std::array<const char*, 7> kPhases = {"Pending",   "Starting",  "Running", "Restarting",
                                                "Suspended", "Succeeded", "Failed"};

prometheus::Family<prometheus::Gauge>* gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return &prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

}  // namespace

JobMetrics::JobMetrics(prometheus::Registry& registry)
    : jobs_(gauges(registry, "gleaner_jobs", "TrainingJobs in this phase")),
      info_(gauges(registry, "gleaner_job_info", "1 for each TrainingJob")),
      phase_(gauges(registry, "gleaner_job_phase", "1 for the phase that the job is in")),
      workers_(gauges(registry, "gleaner_job_workers", "Workers by state")),
      summers_{gauges(registry, "gleaner_job_summers", "Summers on CPU machines that take part"),
               gauges(registry, "gleaner_job_summers_wanted", "Summers that the autoscaler wants (k)"),
               gauges(registry, "gleaner_job_summers_planned", "Summers in the plan in force"),
               gauges(registry, "gleaner_job_summers_reason", "1 for the reason for the number of summers wanted")},
      epoch_(gauges(registry, "gleaner_job_epoch", "Epoch of the plan in force; 0: none")),
      restarts_(gauges(registry, "gleaner_job_restarts", "Failures so far that backoffLimit counts")),
      attempt_(gauges(registry, "gleaner_job_attempt",
                      "Number of the current attempt, which each restart, release of a gang and resume increases")),
      failing_(gauges(registry, "gleaner_job_reconcile_failing_seconds",
                      "Time for which the operator has failed to reconcile the job; 0: it has not failed")),
      strategy_bytes_(gauges(registry, "gleaner_job_strategy_bytes",
                             "Bytes of the tensors that this strategy sums under the plan in force")),
      step_bytes_(gauges(registry, "gleaner_job_step_bytes", "Gradient bytes that a worker reduces in a step")),
      step_dense_bytes_(
          gauges(registry, "gleaner_job_step_dense_bytes",
                 "Bytes that gleaner_job_step_bytes would be without compression and sparse communication")),
      communication_(gauges(registry, "gleaner_job_step_communication_seconds",
                            "Time per step with sums in flight, of the slowest worker: mean of the last minute")),
      bound_(gauges(registry, "gleaner_job_bound_seconds",
                    "Shortest time in which a step's bytes can be reduced under the plan in force")),
      bound_without_summers_(
          gauges(registry, "gleaner_job_bound_without_summers_seconds", "The bound with no summers")),
      goodput_(gauges(registry, "gleaner_job_goodput_bytes_per_second",
                      "Gradient bytes reduced per second of communication and worker: mean of the last minute")),
      efficiency_(
          gauges(registry, "gleaner_job_efficiency_ratio",
                 "Bound divided by measured time, for the last minute's steps, each with the bound in force then")),
      steps_(&prometheus::BuildCounter()
                  .Name("gleaner_job_steps_total")
                  .Help("Steps of the worker that has done the most; an attempt counts from 0")
                  .Register(registry)),
      changes_(&prometheus::BuildCounter()
                    .Name("gleaner_job_summer_changes_total")
                    .Help("Summers that were added, removed, lost or refused, and why")
                    .Register(registry)) {
  for (const char* phase : kPhases) jobs_->Add({{"phase", phase}}).Set(0);
}

void JobMetrics::set(Series& series, Gauges* family, double value, const prometheus::Labels& more) {
  prometheus::Labels labels = series.labels;
  labels.insert(more.begin(), more.end());
  prometheus::Gauge& gauge = family->Add(labels);
  gauge.Set(value);
  for (const auto& [known, pointer] : series.gauges) {
    if (pointer == &gauge) return;
  }
  series.gauges.emplace_back(family, &gauge);
}

void JobMetrics::unset(Series& series, Gauges* family, const prometheus::Labels& more) {
  prometheus::Labels labels = series.labels;
  labels.insert(more.begin(), more.end());
  prometheus::Gauge& gauge = family->Add(labels);
  std::erase_if(series.gauges, [&gauge](const auto& entry) { return entry.second == &gauge; });
  family->Remove(&gauge);
}

void JobMetrics::show(Series& series, Gauges* family, double value) {
  if (value > 0) {
    set(series, family, value);
  } else {
    unset(series, family);
  }
}

void JobMetrics::enter_phase(Series& series, const std::string& phase) {
  if (series.phase == phase) return;
  if (!series.phase.empty()) {
    jobs_->Add({{"phase", series.phase}}).Decrement();
    unset(series, phase_, {{"phase", series.phase}});
  }
  series.phase = phase;
  if (phase.empty()) return;
  jobs_->Add({{"phase", phase}}).Increment();
  set(series, phase_, 1, {{"phase", phase}});
}

void JobMetrics::show_summers(Series& series, const api::SummersStatus& summers) {
  set(series, summers_.planned, summers.had);
  if (summers.reason.empty()) return;
  set(series, summers_.wanted, summers.wanted);
  if (series.reason == summers.reason) return;
  if (!series.reason.empty()) unset(series, summers_.reason, {{"reason", series.reason}});
  series.reason = summers.reason;
  set(series, summers_.reason, 1, {{"reason", summers.reason}});
}

void JobMetrics::show_strategies(Series& series, const std::vector<plan::StrategyShare>& strategies) {
  std::set<std::string> before = std::exchange(series.strategies, {});
  for (const plan::StrategyShare& share : strategies) {
    set(series, strategy_bytes_, static_cast<double>(share.bytes), {{"strategy", share.strategy}});
    series.strategies.insert(share.strategy);
    before.erase(share.strategy);
  }
  for (const std::string& ended : before) unset(series, strategy_bytes_, {{"strategy", ended}});
}

void JobMetrics::count_change(const api::TrainingJob& job, const std::string& change, const std::string& cause) {
  absl::MutexLock lock(&mutex_);
  const auto found = series_.find(job.meta.key());
  if (found == series_.end()) return;
  prometheus::Labels labels = found->second.labels;
  labels["change"] = change;
  labels["reason"] = cause;
  prometheus::Counter& counter = changes_->Add(labels);
  counter.Increment();
  auto& counters = found->second.changes;
  if (std::find(counters.begin(), counters.end(), &counter) == counters.end()) counters.push_back(&counter);
}

void JobMetrics::follow_session(Series& series, const coordinator::Summary& summary) {
  if (summary.tensors > 0) {
    set(series, step_bytes_, summary.recent().bytes_per_step);
    set(series, step_dense_bytes_, summary.recent().dense_bytes_per_step);
    show(series, bound_, summary.plan_bound.seconds);
    show(series, bound_without_summers_, summary.plan_bound.seconds_without_summers);
  }
  if (series.steps == nullptr) series.steps = &steps_->Add(series.labels);
  const auto steps = static_cast<double>(summary.whole.steps);
  if (steps < series.steps_seen) {  // a new attempt
    steps_->Remove(series.steps);
    series.steps = &steps_->Add(series.labels);
    series.steps_seen = 0;
  }
  series.steps->Increment(steps - series.steps_seen);
  series.steps_seen = steps;
  show(series, communication_, summary.window.step_communication_seconds);
  show(series, goodput_, summary.window.goodput_bytes_per_second);
  show(series, efficiency_, summary.window.efficiency);
}

void JobMetrics::update(const api::TrainingJob& job, const api::TrainingJobStatus& status,
                        const coordinator::JobState* session) {
  absl::MutexLock lock(&mutex_);
  auto [entry, is_new] = series_.try_emplace(job.meta.key());
  Series& series = entry->second;
  if (is_new) {
    series.labels = {{"namespace", job.meta.ns}, {"trainingjob", job.meta.name}};
    set(series, info_, 1, {{"strategy", std::string(api::to_string(job.communication.strategy))}});
  }
  enter_phase(series, status.phase);
  set(series, workers_, status.workers_wanted, {{"state", "wanted"}});
  set(series, workers_, status.workers_ready, {{"state", "ready"}});
  set(series, workers_, status.workers_succeeded, {{"state", "succeeded"}});
  set(series, workers_, status.workers_failed, {{"state", "failed"}});
  set(series, summers_.taking_part, status.summers_ready);
  show_summers(series, status.summers);
  set(series, epoch_, status.epoch);
  set(series, restarts_, status.restarts);
  set(series, attempt_, status.attempt);
  if (session == nullptr) return;
  show_strategies(series, session->strategies);
  follow_session(series, session->summary);
}

void JobMetrics::set_failing(const std::string& key, absl::Duration lasting) {
  absl::MutexLock lock(&mutex_);
  const auto found = series_.find(key);
  if (found != series_.end()) set(found->second, failing_, absl::ToDoubleSeconds(lasting));
}

void JobMetrics::remove(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = series_.find(key);
  if (found == series_.end()) return;
  enter_phase(found->second, "");
  for (const auto& [family, gauge] : found->second.gauges) family->Remove(gauge);
  for (prometheus::Counter* counter : found->second.changes) changes_->Remove(counter);
  if (found->second.steps != nullptr) steps_->Remove(found->second.steps);
  series_.erase(found);
}

}  // namespace gleaner::operation
