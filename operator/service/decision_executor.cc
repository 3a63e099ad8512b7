#include "operator/service/decision_executor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::operation {
namespace {

using reconcile::Decision;
using reconcile::Observation;
using reconcile::Step;

void requeue_after(std::optional<absl::Duration> delay, Outcome& outcome) {
  if (!delay.has_value()) return;
  outcome.requeue_after = std::min(*delay, outcome.requeue_after.value_or(absl::InfiniteDuration()));
}

void add(const reconcile::Action& action, StepOutcome step, Outcome& outcome) {
  outcome.done += step.failure.ok();
  if (!step.failure.ok()) {
    outcome.failure.Update(
        {step.failure.code(), absl::StrCat("can't ", purpose_of(action), ": ", step.failure.message())});
  }
  outcome.refused = outcome.refused || step.refusal.has_value();
  std::move(step.events.begin(), step.events.end(), std::back_inserter(outcome.events));
  requeue_after(step.requeue_after, outcome);
}

// Returns whether a watch will soon cause a decision that writes the same status.
bool may_wait(const Step& step, const Outcome& so_far) {
  const auto* write = std::get_if<reconcile::WriteStatus>(&step.action);
  return write != nullptr && write->optional && so_far.failure.ok() && !so_far.requeue_after.has_value();
}

}  // namespace

Outcome DecisionExecutor::carry_out(const Observation& observation, const Decision& decision) const {
  Outcome outcome;
  Decision current = decision;  // a refusal replaces it
  std::vector<bool> missing;    // steps that failed, were refused or were skipped, by place
  requeue_after(current.requeue_after(), outcome);
  for (size_t i = 0; i < current.steps().size(); ++i) {
    const Step& step = current.steps()[i];
    const bool skipped =
        std::any_of(step.needs.begin(), step.needs.end(), [&missing](size_t needed) { return missing[needed]; });
    missing.push_back(skipped);
    if (skipped || may_wait(step, outcome)) continue;
    StepOutcome done = runner_.run(observation, step.action);
    missing.back() = !done.failure.ok() || done.refusal.has_value();
    const std::optional<reconcile::Refusal> refusal = done.refusal;
    add(step.action, std::move(done), outcome);
    if (!refusal.has_value()) continue;
    current = refused_start(observation, current, i, *refusal);
    requeue_after(current.requeue_after(), outcome);
  }
  if (current.status() != nullptr) outcome.status = *current.status();
  runner_.record(observation.job, outcome.events);
  return outcome;
}

}  // namespace gleaner::operation
