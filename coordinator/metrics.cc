#include "coordinator/metrics.h"

namespace gleaner::coordinator {
namespace {

void raise_to(prometheus::Counter& counter, double value) {
  if (value > counter.Value()) counter.Increment(value - counter.Value());
}

}  // namespace

Metrics::Metrics(prometheus::Registry& registry, const std::string& job)
    : efficiency_(prometheus::BuildGauge()
                      .Name("gleaner_coordinator_efficiency_ratio")
                      .Help("Bound / measured time of the last minute's steps, each with the bound in force then; no "
                            "series while it is unknown.")
                      .Register(registry)),
      labels_{{"job_name", job}} {
  const auto gauge = [&](const char* name, const char* help) {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(registry);
    return gauges_.emplace_back(&family, &family.Add(labels_)).second;
  };
  const auto counter = [&](const char* name, const char* help) {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry);
    return counters_.emplace_back(&family, &family.Add(labels_)).second;
  };
  ranks_expected_ = gauge("gleaner_coordinator_expected_ranks", "Ranks that the job has.");
  ranks_joined_ = gauge("gleaner_coordinator_joined_ranks", "Ranks that have joined.");
  summers_expected_ = gauge("gleaner_coordinator_expected_summers", "Summers on CPU machines that the job has.");
  summers_joined_ = gauge("gleaner_coordinator_joined_summers", "Summers on CPU machines that have joined.");
  slow_summers_ = gauge("gleaner_coordinator_slow_summers",
                        "Summers on CPU machines with which steps take longer than without them.");
  epoch_ = gauge("gleaner_coordinator_epoch", "Epoch of the plan in force; 0 before the start.");
  tensors_ = gauge("gleaner_coordinator_tensors", "Tensors in the plan in force.");
  partitions_ = gauge("gleaner_coordinator_partitions", "Partitions in the plan in force.");
  step_bytes_ = gauge("gleaner_coordinator_step_bytes",
                      "Gradient bytes that a worker reduces per step: mean of the last minute.");
  communication_ = gauge("gleaner_coordinator_step_communication_seconds",
                         "Time per step with sums in flight, of the slowest worker: mean of the last minute.");
  bound_ = gauge("gleaner_coordinator_bound_seconds",
                 "Least time that a step's bytes can take under the plan in force; 0: not known.");
  bound_without_summers_ =
      gauge("gleaner_coordinator_bound_without_summers_seconds", "The same without summers on CPU machines.");
  goodput_ = gauge("gleaner_coordinator_goodput_bytes_per_second",
                   "Gradient bytes reduced per second of communication: mean of the last minute.");
  steps_ = counter("gleaner_coordinator_steps_total", "Steps of the worker that is furthest.");
  rounds_ = counter("gleaner_coordinator_ended_rounds_total",
                    "Rounds of an elastic job that ended because a worker was lost or waited to join.");
  rejected_ = counter("gleaner_coordinator_rejected_joins_total", "Members that were not admitted.");
  recovery_seconds_ = counter("gleaner_coordinator_recovery_seconds_total",
                              "Time from the loss of a summer to the commit of a plan without it.");
  const auto change = [&](const char* name, const char* help, uint32_t Changes::*count) {
    changes_.emplace_back(counter(name, help), count);
  };
  change("gleaner_coordinator_recoveries_total", "Committed plans that left out a lost summer.", &Changes::recovered);
  change("gleaner_coordinator_moves_total", "Committed optional plans, which reassign all partitions.",
         &Changes::moved);
  change("gleaner_coordinator_given_up_changes_total",
         "Optional plans withdrawn: a rank refused, or a member did not acknowledge in time.", &Changes::withdrawn);
  change("gleaner_coordinator_lost_summers_total", "Summers that were lost.", &Changes::lost);
  change("gleaner_coordinator_come_summers_total", "Summers that joined while the job ran.", &Changes::came);
  change("gleaner_coordinator_left_summers_total", "Summers that left cleanly while the job ran.", &Changes::left);
}

Metrics::~Metrics() {
  if (efficiency_known_ != nullptr) efficiency_.Remove(efficiency_known_);
  for (const auto& [family, gauge] : gauges_) family->Remove(gauge);
  for (const auto& [family, counter] : counters_) family->Remove(counter);
}

void Metrics::update(const Core& core, uint32_t refused, const Past& past) {
  const Roster& roster = core.roster();
  ranks_expected_->Set(roster.ranks());
  ranks_joined_->Set(roster.joined_ranks());
  summers_expected_->Set(roster.size() - roster.ranks());
  summers_joined_->Set(roster.joined_summers());
  slow_summers_->Set(core.slow_summers().count());
  raise_to(*rejected_, core.rejected() + refused + past.rejected);
  const Summary summary = core.summary();
  epoch_->Set(summary.epoch);
  tensors_->Set(static_cast<double>(summary.tensors));
  partitions_->Set(static_cast<double>(summary.partitions));
  const bool measured = summary.window.steps > 0;
  step_bytes_->Set(measured ? summary.window.bytes_per_step : summary.bytes_per_step);
  communication_->Set(measured ? summary.window.step_communication_seconds : summary.step_communication_seconds);
  bound_->Set(summary.plan_bound_seconds);
  bound_without_summers_->Set(summary.plan_bound_seconds_without_summers);
  goodput_->Set(measured ? summary.window.goodput_bytes_per_second : summary.goodput_bytes_per_second);
  show_efficiency(summary.window);
  raise_to(*recovery_seconds_, core.changes().recovery_seconds + past.changes.recovery_seconds);
  for (const auto& [counter, count] : changes_) raise_to(*counter, core.changes().*count + past.changes.*count);
  raise_to(*steps_, static_cast<double>(summary.steps + past.steps));
  raise_to(*rounds_, past.rounds);
}

void Metrics::show_efficiency(const Figures& figures) {
  const bool is_known = figures.basis == Basis::kBandwidth;
  if (is_known && efficiency_known_ == nullptr) efficiency_known_ = &efficiency_.Add(labels_);
  if (!is_known && efficiency_known_ != nullptr) efficiency_.Remove(std::exchange(efficiency_known_, nullptr));
  if (is_known) efficiency_known_->Set(figures.efficiency);
}

}  // namespace gleaner::coordinator
