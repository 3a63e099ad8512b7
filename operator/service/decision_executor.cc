#include "operator/service/decision_executor.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gleaner::operation {
namespace {

using reconcile::Decision;
using reconcile::Observation;
using reconcile::Step;

void requeue_after(std::optional<absl::Duration> delay, Outcome& outcome) {
  if (!delay.has_value()) return;
  outcome.requeue_after = std::min(*delay, outcome.requeue_after.value_or(absl::InfiniteDuration()));
}

void add(StepOutcome step, Outcome& outcome) {
  outcome.done += step.failure.ok();
  outcome.failure.Update(step.failure);
  outcome.refused = outcome.refused || step.refusal.has_value();
  std::move(step.events.begin(), step.events.end(), std::back_inserter(outcome.events));
  requeue_after(step.requeue_after, outcome);
}

bool is_skipped(const Step& step, const Outcome& so_far) {
  if (!so_far.failure.ok()) return step.order != Step::Order::kAlways;
  const auto* write = std::get_if<reconcile::WriteStatus>(&step.action);
  return write != nullptr && write->optional && !so_far.requeue_after.has_value();
}

}  // namespace

Outcome DecisionExecutor::carry_out(const Observation& observation, const Decision& decision) const {
  Outcome outcome;
  run(observation, decision, outcome);
  runner_.record(observation.job, outcome.events);
  return outcome;
}

void DecisionExecutor::run(const Observation& observation, const Decision& decision, Outcome& outcome) const {
  if (decision.status() != nullptr) outcome.status = *decision.status();
  requeue_after(decision.requeue_after(), outcome);
  for (const Step& step : decision.steps()) {
    if (is_skipped(step, outcome)) continue;
    StepOutcome done = runner_.run(observation, step.action);
    if (done.refusal.has_value()) {
      const Decision rest = refused_start(observation, decision, *done.refusal);
      add(std::move(done), outcome);
      run(observation, rest, outcome);
      return;
    }
    const bool has_failed = !done.failure.ok();
    add(std::move(done), outcome);
    if (has_failed && step.order == Step::Order::kFirst) return;
  }
}

}  // namespace gleaner::operation
