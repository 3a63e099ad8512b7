#include "operator/service/step_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/kube/status.h"
#include "operator/reconcile/job_network.h"
#include "operator/reconcile/pods.h"
#include "operator/service/ownership.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr absl::Duration kCacheBehind = absl::Seconds(5);
constexpr absl::Duration kSoon = absl::Seconds(1);
constexpr char kRefused[] = "SummerRefused";  // the Event about summers, and the change that metrics count

// Returns whether the API server refuses an object, or another object has its name.
bool is_refused(const absl::Status& status) { return kube::is_refusal(status) || absl::IsAlreadyExists(status); }

// Returns the outcome of a step that creates an object of this kind and ended with `status`. A refusal is an Event and
// a failure: the controller repeats the decision with backoff.
StepOutcome outcome_of(const char* kind, const absl::Status& status) {
  StepOutcome outcome{status};
  if (kube::is_refusal(status)) outcome.events.push_back(reconcile::refusal_event(kind, status));
  return outcome;
}

// Calls the part that an action is for. Each call operator is for one kind of action.
class Call {
 public:
  Call(const StepRunner& runner, const StepRunner::Parts& parts, const reconcile::Observation& observation)
      : runner_(runner), parts_(parts), observation_(observation), job_(observation.job) {}

  StepOutcome operator()(const reconcile::ConfirmMissing& missing) const {
    for (const std::string& name : missing.pods) {
      const auto pod = parts_.client.get(kube::pods(), job_.meta.ns, name);
      if (pod.ok()) return {absl::AbortedError("the pod cache is behind: a pod that seemed to be gone exists")};
      if (!absl::IsNotFound(pod.status())) return {pod.status()};
    }
    return {};
  }

  StepOutcome operator()(const reconcile::WriteStatus& write) const {
    return {parts_.reports.write_status(job_, write.status)};
  }

  StepOutcome operator()(const reconcile::EndSession& end) const {
    parts_.sessions.end(job_.meta.key(), end.why);
    parts_.reports.forget(job_.meta.key());
    return {};
  }

  StepOutcome operator()(const reconcile::EnsureBootstrap& ensure) const {
    const absl::Status status = parts_.identities.ensure_bootstrap(job_.meta.ns);
    return ensure.starts_workers ? start_outcome("ConfigMap", status) : outcome_of("ConfigMap", status);
  }

  StepOutcome operator()(const reconcile::CreateService&) const {
    return start_outcome("Service", ensure_worker_service(parts_.client, job_));
  }

  StepOutcome operator()(const reconcile::CreateWorkers& create) const {
    std::optional<absl::Duration> requeue_after;
    for (const json& pod : create.pods) {
      const absl::Status created = parts_.client.create(kube::pods(), pod).status();
      if (created.ok()) continue;
      if (!absl::IsAlreadyExists(created)) {
        StepOutcome outcome = start_outcome("Pod", created);
        outcome.requeue_after = requeue_after;
        return outcome;
      }
      const absl::Status ours = check_pod_owner(parts_.client, job_, pod["metadata"]["name"]);
      if (!ours.ok()) return start_outcome("Pod", ours);
      requeue_after = kCacheBehind;  // the pod belongs to the job, and is not in the cache yet
    }
    parts_.backoff.forget(job_.meta.key(), CreationBackoff::Kind::kWorkers);
    StepOutcome outcome;
    outcome.requeue_after = requeue_after;
    return outcome;
  }

  // The job runs without summers that the API server refuses. People are told once in a row of refusals; the condition
  // SummersRefused then has the API server's last words.
  StepOutcome operator()(const reconcile::CreateSummers& create) const {
    StepOutcome outcome;
    absl::Status refusal;
    bool any_exists = false;
    for (const json& pod : create.pods) {
      absl::Status created = parts_.client.create(kube::pods(), pod).status();
      if (absl::IsAlreadyExists(created)) created = check_pod_owner(parts_.client, job_, pod["metadata"]["name"]);
      if (created.ok()) {
        any_exists = true;
      } else if (is_refused(created)) {
        parts_.metrics.count_change(job_, kRefused, reconcile::refusal_reason("Pod", created));
        refusal.Update(created);
      } else {
        outcome.failure = created;
        break;
      }
    }
    if (any_exists) outcome.events.push_back(create.note);
    if (!refusal.ok()) {
      const bool first = !parts_.backoff.summers_refused(job_).has_value();
      if (first) outcome.events.push_back({true, kRefused, reconcile::refusal_event("Pod", refusal).message});
      parts_.backoff.refuse(job_, CreationBackoff::Kind::kSummers, refusal);
      outcome.requeue_after = kSoon;  // the condition follows
    } else if (outcome.failure.ok()) {
      parts_.backoff.forget(job_.meta.key(), CreationBackoff::Kind::kSummers);
    }
    return outcome;
  }

  StepOutcome operator()(const reconcile::ReleaseWorkers& release) const {
    for (const reconcile::PodRelease& pod : release.pods) {
      json gates = json::array();
      for (const std::string& gate : pod.gates) gates.push_back({{"name", gate}});
      const auto patched = parts_.client.merge_patch(kube::pods(), job_.meta.ns, pod.name,
                                                     {{"spec", {{"schedulingGates", std::move(gates)}}}});
      if (!patched.ok() && !absl::IsNotFound(patched.status())) return {patched.status()};
    }
    return {};
  }

  StepOutcome operator()(const reconcile::CreateRankMap& create) const {
    const absl::Status created = parts_.client.create(kube::config_maps(), create.object).status();
    return absl::IsAlreadyExists(created) ? StepOutcome() : outcome_of("ConfigMap", created);
  }

  StepOutcome operator()(const reconcile::LabelWorkers& label) const {
    StepOutcome outcome;
    for (const reconcile::PodRank& pod : label.pods) {
      const json labels = {{api::kRankLabel, absl::StrCat(pod.rank)}};
      const auto patched =
          parts_.client.merge_patch(kube::pods(), job_.meta.ns, pod.name, {{"metadata", {{"labels", labels}}}});
      if (!absl::IsNotFound(patched.status())) outcome.failure.Update(patched.status());
    }
    return outcome;
  }

  StepOutcome operator()(const reconcile::WritePlan& write) const {
    return outcome_of("ReductionPlan", parts_.reports.write_plan(observation_.plan, write.plan));
  }

  StepOutcome operator()(const reconcile::OpenSession& open) const {
    if (parts_.sessions.is_open(job_)) return {};
    coordinator::Service::JobOptions options;
    options.options = open.options;
    if (const absl::Status mapped = reconcile::map_schedules(options.options); !mapped.ok()) return {mapped};
    options.data_secret = parts_.identities.data_secret(open.options.job, job_.meta.uid);
    options.may_resume = true;  // the session may have begun under another operator
    return {parts_.sessions.open(job_, options)};
  }

  StepOutcome operator()(const reconcile::TellSession& facts) const {
    StepOutcome outcome;
    outcome.events = parts_.sessions.tell(job_.meta.key(), facts);
    return outcome;
  }

  StepOutcome operator()(const reconcile::RemovePods& remove) const {
    StepOutcome outcome;
    for (const reconcile::PodRemoval& pod : remove.pods) {
      outcome.failure.Update(parts_.client.remove(kube::pods(), job_.meta.ns, pod.name, {pod.uid, {}, false}));
    }
    return outcome;
  }

  StepOutcome operator()(const reconcile::RecordEvents& record) const {
    runner_.record(job_, record.events);
    return {};
  }

  StepOutcome operator()(const reconcile::RemoveJob&) const {
    return {parts_.client.remove(kube::training_jobs(), job_.meta.ns, job_.meta.name, {job_.meta.uid, {}, false})};
  }

 private:
  // Returns the outcome of a step that creates an object of this kind, which the start of the workers needs.
  StepOutcome start_outcome(const char* kind, const absl::Status& status) const {
    if (!is_refused(status)) return {status};
    StepOutcome outcome;
    const absl::Time now = parts_.env.clock->now();
    outcome.refusal =
        reconcile::Refusal{kind, status, now, parts_.backoff.refuse(job_, CreationBackoff::Kind::kWorkers, status)};
    return outcome;
  }

  const StepRunner& runner_;
  const StepRunner::Parts& parts_;
  const reconcile::Observation& observation_;
  const api::TrainingJob& job_;
};

}  // namespace

StepOutcome StepRunner::run(const reconcile::Observation& observation, const reconcile::Action& action) const {
  return std::visit(Call(*this, parts_, observation), action);
}

void StepRunner::record(const api::TrainingJob& job, const std::vector<reconcile::EventNote>& events) const {
  const kube::ObjectReference about{api::kApiVersion, "TrainingJob", job.meta.ns, job.meta.name, job.meta.uid};
  for (const reconcile::EventNote& event : events) {
    if (!event.cause.empty()) parts_.metrics.count_change(job, event.reason, event.cause);
    if (event.warning) {
      parts_.events.warning(about, event.reason, event.message);
    } else {
      parts_.events.normal(about, event.reason, event.message);
    }
  }
}

}  // namespace gleaner::operation
