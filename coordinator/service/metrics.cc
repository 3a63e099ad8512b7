#include "coordinator/service/metrics.h"

#include <iterator>

#include "common/plan/schedule_name.h"

namespace gleaner::coordinator {
namespace {

void raise_to(prometheus::Counter& counter, double value) {
  if (value > counter.Value()) counter.Increment(value - counter.Value());
}

}  // namespace

Metrics::Metrics(prometheus::Registry& registry, const std::string& job)
    : labels_{{"job_name", job}},
      efficiency_(prometheus::BuildGauge()
                      .Name("gleaner_coordinator_efficiency_ratio")
                      .Help("Bound / measured time of the last minute's steps, each with the bound in force then; no "
                            "series while it is unknown.")
                      .Register(registry)),
      strategy_bytes_(prometheus::BuildGauge()
                          .Name("gleaner_coordinator_strategy_bytes")
                          .Help("Bytes of the tensors that this strategy sums under the plan in force.")
                          .Register(registry)) {
  const auto gauge = [&](const char* name, const char* help) {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(registry);
    return gauges_.emplace_back(&family, &family.Add(labels_)).second;
  };
  const auto counter = [&](const char* name, const char* help) {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(registry);
    return counters_.emplace_back(&family, &family.Add(labels_)).second;
  };
  members_.ranks_expected = gauge("gleaner_coordinator_expected_ranks", "Ranks that the job has.");
  members_.ranks_joined = gauge("gleaner_coordinator_joined_ranks", "Ranks that have joined.");
  members_.summers_expected =
      gauge("gleaner_coordinator_expected_summers", "Summers on CPU machines that the job has.");
  members_.summers_joined = gauge("gleaner_coordinator_joined_summers", "Summers on CPU machines that have joined.");
  members_.slow_summers = gauge("gleaner_coordinator_slow_summers",
                                "Summers on CPU machines with which steps take longer than without them.");
  plan_.epoch = gauge("gleaner_coordinator_epoch", "Epoch of the plan in force; 0 before the start.");
  plan_.tensors = gauge("gleaner_coordinator_tensors", "Tensors in the plan in force.");
  plan_.partitions = gauge("gleaner_coordinator_partitions", "Partitions in the plan in force.");
  steps_.bytes = gauge("gleaner_coordinator_step_bytes",
                       "Gradient bytes that a worker reduces per step: mean of the last minute.");
  steps_.dense_bytes =
      gauge("gleaner_coordinator_step_dense_bytes", "The same without compression and sparse communication.");
  steps_.communication =
      gauge("gleaner_coordinator_step_communication_seconds",
            "Time per step with sums in flight, of the slowest worker, without the wait for a late rank: mean of "
            "the last minute.");
  plan_.bound = gauge("gleaner_coordinator_bound_seconds",
                      "Least time that a step's bytes can take under the plan in force; 0: not known.");
  plan_.bound_without_summers =
      gauge("gleaner_coordinator_bound_without_summers_seconds", "The same without summers on CPU machines.");
  steps_.goodput = gauge("gleaner_coordinator_goodput_bytes_per_second",
                         "Gradient bytes reduced per second of communication: mean of the last minute.");
  steps_.count = counter("gleaner_coordinator_steps_total", "Steps of the worker that is furthest.");
  rounds_ = counter("gleaner_coordinator_ended_rounds_total",
                    "Rounds of an elastic job that ended because a worker was lost or waited to join.");
  members_.rejected = counter("gleaner_coordinator_rejected_joins_total", "Members that were not admitted.");
  recovery_seconds_ = counter("gleaner_coordinator_recovery_seconds_total",
                              "Time from the loss of a summer to the commit of a plan without it.");
  const auto change = [&](const char* name, const char* help, uint32_t Changes::*count) {
    changes_.emplace_back(counter(name, help), count);
  };
  change("gleaner_coordinator_recoveries_total", "Committed plans that left out a lost summer.", &Changes::recovered);
  change("gleaner_coordinator_moves_total", "Committed optional plans, which reassign all partitions.",
         &Changes::moved);
  change("gleaner_coordinator_strategy_changes_total",
         "Committed plans that changed the strategies or masters of tensors.", &Changes::strategies);
  change("gleaner_coordinator_given_up_changes_total",
         "Optional plans withdrawn: a rank refused, or a member did not acknowledge in time.", &Changes::withdrawn);
  change("gleaner_coordinator_lost_summers_total", "Summers that were lost.", &Changes::lost);
  change("gleaner_coordinator_come_summers_total", "Summers that joined while the job ran.", &Changes::came);
  change("gleaner_coordinator_left_summers_total", "Summers that left cleanly while the job ran.", &Changes::left);
}

Metrics::~Metrics() {
  if (efficiency_known_ != nullptr) efficiency_.Remove(efficiency_known_);
  for (const auto& [strategy, gauge] : strategies_) strategy_bytes_.Remove(gauge);
  for (const auto& [family, gauge] : gauges_) family->Remove(gauge);
  for (const auto& [family, counter] : counters_) family->Remove(counter);
}

void Metrics::update(const Core& core, uint32_t refused, const Past& past) {
  const Roster& roster = core.roster();
  members_.ranks_expected->Set(roster.ranks());
  members_.ranks_joined->Set(roster.joined_ranks());
  members_.summers_expected->Set(roster.summers());
  members_.summers_joined->Set(roster.joined_summers());
  members_.slow_summers->Set(core.steps().slow_summers().count());
  raise_to(*members_.rejected, core.admission().rejected() + refused + past.rejected);
  const Summary summary = core.summary();
  plan_.epoch->Set(summary.epoch);
  plan_.tensors->Set(static_cast<double>(summary.tensors));
  plan_.partitions->Set(static_cast<double>(summary.partitions));
  plan_.bound->Set(summary.plan_bound.seconds);
  plan_.bound_without_summers->Set(summary.plan_bound.seconds_without_summers);
  const Figures& recent = summary.recent();
  steps_.bytes->Set(recent.bytes_per_step);
  steps_.dense_bytes->Set(recent.dense_bytes_per_step);
  steps_.communication->Set(recent.step_communication_seconds);
  steps_.goodput->Set(recent.goodput_bytes_per_second);
  show_efficiency(summary.window);
  show_strategies(core.plan());
  raise_to(*steps_.count, static_cast<double>(summary.whole.steps + past.steps));
  raise_to(*rounds_, past.rounds);
  raise_to(*recovery_seconds_, core.planning().changes().recovery_seconds + past.changes.recovery_seconds);
  for (const auto& [counter, count] : changes_)
    raise_to(*counter, core.planning().changes().*count + past.changes.*count);
}

void Metrics::show_efficiency(const Figures& figures) {
  const bool is_known = figures.basis == Basis::kBandwidth;
  if (is_known && efficiency_known_ == nullptr) efficiency_known_ = &efficiency_.Add(labels_);
  if (!is_known && efficiency_known_ != nullptr) efficiency_.Remove(std::exchange(efficiency_known_, nullptr));
  if (is_known) efficiency_known_->Set(figures.efficiency);
}

void Metrics::show_strategies(const plan::Plan& plan) {
  std::map<std::string, double> bytes;
  for (const plan::Tensor& tensor : plan.tensors) {
    const bool scheduled = tensor.schedule.has_value();
    bytes[scheduled ? collective::name_of(plan.schedules[*tensor.schedule]) : plan::kSummersStrategy] +=
        static_cast<double>(tensor.bytes());
  }
  for (auto each = strategies_.begin(); each != strategies_.end();) {
    const bool is_in_force = bytes.contains(each->first);
    if (!is_in_force) strategy_bytes_.Remove(each->second);
    each = is_in_force ? std::next(each) : strategies_.erase(each);
  }
  for (const auto& [strategy, value] : bytes) {
    prometheus::Gauge*& gauge = strategies_[strategy];
    if (gauge == nullptr) {
      prometheus::Labels labels = labels_;
      labels["strategy"] = strategy;
      gauge = &strategy_bytes_.Add(labels);
    }
    gauge->Set(value);
  }
}

}  // namespace gleaner::coordinator
