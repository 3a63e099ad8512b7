#include "operator/service/decision_executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/kube/status.h"
#include "operator/reconcile/gang_start.h"
#include "operator/reconcile/pods.h"
#include "operator/service/field_manager.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr absl::Duration kForeignPod = absl::Seconds(5);

void requeue_after(absl::Duration delay, Outcome& outcome) {
  outcome.requeue_after = std::min(delay, outcome.requeue_after.value_or(absl::InfiniteDuration()));
}

// Carries out the steps of one decision. Each call operator is for one kind of step: it returns the step's error, and
// records in the outcome the results that later steps or the caller need.
class Execution {
 public:
  Execution(const DecisionExecutor::Parts& parts, const reconcile::Observed& observed,
            const reconcile::Decision& decision)
      : parts_(parts), observed_(observed), job_(observed.job), decision_(decision) {
    outcome_.status = decision.status;
    outcome_.events = decision.events;
    outcome_.requeue_after = decision.requeue_after;
  }

  Outcome run(const std::vector<Step>& steps) && {
    for (const Step& step : steps) {
      if (!outcome_.failure.ok() && step.order != Step::Order::kAlways) continue;
      const absl::Status status = std::visit(*this, step.action);
      outcome_.done += status.ok();
      outcome_.failure.Update(status);
      if (!status.ok() && step.order == Step::Order::kFirst) break;
    }
    return std::move(outcome_);
  }

  absl::Status operator()(const ConfirmMissing& missing) {
    for (const std::string& name : missing.pods) {
      const auto pod = parts_.client.get(kube::pods(), job_.meta.ns, name);
      if (pod.ok()) return absl::AbortedError("the pod cache is behind: a pod that seemed to be gone exists");
      if (!absl::IsNotFound(pod.status())) return pod.status();
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const WriteStatus& write) {
    if (write.optional && outcome_.failure.ok() && !outcome_.requeue_after.has_value()) return absl::OkStatus();
    return parts_.reports.write_status(job_, outcome_.status);
  }

  absl::Status operator()(const EndSession& end) {
    parts_.sessions.end(job_.meta.key(), end.why);
    parts_.reports.forget(job_.meta.key());
    return absl::OkStatus();
  }

  absl::Status operator()(const EnsureBootstrap&) {
    return unless_refused("ConfigMap", parts_.identities.ensure_bootstrap(job_.meta.ns));
  }

  absl::Status operator()(const CreateService&) {
    if (outcome_.refused) return absl::OkStatus();
    return unless_refused(
        "Service", parts_.client.apply(kube::services(), reconcile::worker_service(job_), apply_options()).status());
  }

  absl::Status operator()(const CreateWorkers& create) {
    for (const json& pod : create.pods) {
      if (outcome_.refused) break;
      absl::Status created = parts_.client.create(kube::pods(), pod).status();
      if (absl::IsAlreadyExists(created)) {
        // The pod belongs to the job and is not in the cache yet, or a foreign pod has the name and must be deleted
        // first.
        requeue_after(kForeignPod, outcome_);
      } else if (absl::Status status = unless_refused("Pod", created); !status.ok()) {
        return status;
      }
    }
    if (!outcome_.refused) parts_.backoff.forget(job_.meta.key());
    return absl::OkStatus();
  }

  // The job runs without summers that the API server refuses.
  absl::Status operator()(const CreateSummers& create) {
    for (const json& pod : create.pods) {
      absl::Status created = parts_.client.create(kube::pods(), pod).status();
      if (created.ok() || absl::IsAlreadyExists(created)) continue;
      if (!kube::is_refusal(created)) return created;
      outcome_.events.push_back({true, "SummerRefused",
                                 absl::StrCat("the API server refuses a summer: ", created.message()),
                                 absl::IsResourceExhausted(created) ? "QuotaExceeded" : "PodRefused"});
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const ReleaseWorkers& release) {
    for (const reconcile::PodRelease& pod : release.pods) {
      json gates = json::array();
      for (const std::string& gate : pod.gates) gates.push_back({{"name", gate}});
      const auto patched = parts_.client.merge_patch(kube::pods(), job_.meta.ns, pod.name,
                                                     {{"spec", {{"schedulingGates", std::move(gates)}}}});
      if (!patched.ok() && !absl::IsNotFound(patched.status())) return patched.status();
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const WritePlan& write) {
    return unless_refused("ReductionPlan", parts_.reports.write_plan(observed_.plan, write.plan));
  }

  absl::Status operator()(const OpenSession& open) {
    coordinator::Service::JobOptions options;
    options.options = open.options;
    options.data_secret = parts_.identities.data_secret(open.options.job, job_.meta.uid);
    options.may_resume = true;  // the session may have begun under another operator
    return parts_.sessions.open(job_, options);
  }

  absl::Status operator()(const TellSession&) {
    for (reconcile::EventNote& event : parts_.sessions.tell(job_.meta.key(), decision_)) {
      outcome_.events.push_back(std::move(event));
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const RemovePods& remove) {
    absl::Status first;
    for (const reconcile::PodRemoval& pod : remove.pods) {
      first.Update(parts_.client.remove(kube::pods(), job_.meta.ns, pod.name, {pod.uid, {}, false}));
    }
    return first;
  }

  absl::Status operator()(const RecordEvents&) {
    const kube::ObjectReference about{api::kApiVersion, "TrainingJob", job_.meta.ns, job_.meta.name, job_.meta.uid};
    // After a failure the decision's own Events wait until it is carried out. Those of its steps have happened.
    const size_t first = outcome_.failure.ok() ? 0 : decision_.events.size();
    for (size_t i = first; i < outcome_.events.size(); ++i) {
      const reconcile::EventNote& event = outcome_.events[i];
      if (!event.cause.empty()) parts_.metrics.count_change(job_, event.reason, event.cause);
      if (event.warning) {
        parts_.events.warning(about, event.reason, event.message);
      } else {
        parts_.events.normal(about, event.reason, event.message);
      }
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const RemoveJob&) {
    return parts_.client.remove(kube::training_jobs(), job_.meta.ns, job_.meta.name, {job_.meta.uid, {}, false});
  }

 private:
  // If the API server refuses an object that the start of the workers needs, the decision does not fail: the status
  // shows the refusal, and the operator tries again after a pause. A refusal of another object is an Event, and fails
  // the decision, which the controller repeats with backoff.
  absl::Status unless_refused(const char* kind, const absl::Status& status) {
    if (!kube::is_refusal(status)) return status;
    if (decision_.create.empty()) {
      outcome_.events.push_back(reconcile::refusal_event(kind, status));
      return status;
    }
    const reconcile::StatusUpdate update =
        reconcile::refused_start(job_, outcome_.status, kind, status, parts_.env.clock->now());
    outcome_.refused = true;
    outcome_.status = update.status;
    outcome_.events.insert(outcome_.events.end(), update.events().begin(), update.events().end());
    requeue_after(parts_.backoff.refuse(job_), outcome_);
    return absl::OkStatus();
  }

  const DecisionExecutor::Parts& parts_;
  const reconcile::Observed& observed_;
  const api::TrainingJob& job_;
  const reconcile::Decision& decision_;
  Outcome outcome_;
};

}  // namespace

Outcome DecisionExecutor::carry_out(const reconcile::Observed& observed, const reconcile::Decision& decision) const {
  return Execution(parts_, observed, decision).run(steps_of(observed.job, decision));
}

}  // namespace gleaner::operation
