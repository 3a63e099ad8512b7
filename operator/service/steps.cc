#include "operator/service/steps.h"

namespace gleaner::operation {

using reconcile::Decision;

namespace {

bool has_ended(const api::TrainingJobStatus& status) { return status.phase == "Succeeded" || status.phase == "Failed"; }

// Returns whether the status has a fact that a later decision could not find again in the cluster's objects once the
// decision's other steps are carried out, or once a pod is deleted.
bool must_be_written_first(const api::TrainingJob& job, const Decision& decision) {
  const bool is_new_attempt = decision.status.attempt != job.status.attempt;
  const bool any_succeeded = decision.status.succeeded_indexes != job.status.succeeded_indexes;
  return is_new_attempt || !decision.create_summers.empty() || any_succeeded ||
         has_ended(decision.status) != has_ended(job.status);
}

}  // namespace

std::vector<Step> steps_of(const api::TrainingJob& job, const Decision& decision) {
  using Order = Step::Order;
  std::vector<Step> steps;
  bool has_bootstrap = false;
  const auto add_bootstrap = [&] {
    if (!has_bootstrap) steps.push_back({EnsureBootstrap{}});
    has_bootstrap = true;
  };
  if (!decision.confirm_missing.empty()) steps.push_back({ConfirmMissing{decision.confirm_missing}, Order::kFirst});
  const bool status_first = must_be_written_first(job, decision);
  if (status_first) steps.push_back({WriteStatus{}, Order::kFirst});
  if (decision.end_session.has_value()) steps.push_back({EndSession{*decision.end_session}});
  if (!decision.create.empty()) {
    add_bootstrap();
    if (decision.service && job.workers.replicas > 1) steps.push_back({CreateService{}});
    steps.push_back({CreateWorkers{decision.create}});
  }
  if (!decision.create_summers.empty()) {
    add_bootstrap();
    steps.push_back({CreateSummers{decision.create_summers}});
  }
  if (!decision.release.empty()) steps.push_back({ReleaseWorkers{decision.release}});
  if (decision.plan.has_value()) steps.push_back({WritePlan{*decision.plan}});
  if (decision.session.has_value()) {
    add_bootstrap();
    steps.push_back({OpenSession{*decision.session}});
    steps.push_back({TellSession{}});
  }
  if (!decision.remove.empty()) steps.push_back({RemovePods{decision.remove}, Order::kAlways});
  const bool is_new_job = !job.status.start_time.has_value() && !decision.create.empty();
  if (!status_first) steps.push_back({WriteStatus{.optional = is_new_job}, Order::kAlways});
  steps.push_back({RecordEvents{}, Order::kAlways});
  if (decision.remove_job) steps.push_back({RemoveJob{}});
  return steps;
}

}  // namespace gleaner::operation
