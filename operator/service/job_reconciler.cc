#include "operator/service/job_reconciler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "operator/reconcile/names.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr char kFieldManager[] = "gleaner-operator";
// Figures that change with every step are written this often; everything else at once.
constexpr absl::Duration kFigureInterval = absl::Seconds(10);
// The least time between two bandwidths told of one member: each is a plan of its own.
constexpr absl::Duration kBandwidthPause = absl::Seconds(10);
constexpr absl::Duration kForeignPod = absl::Seconds(5);

kube::ApplyOptions apply_options(const char* subresource = "") {
  kube::ApplyOptions options;
  options.field_manager = kFieldManager;
  options.subresource = subresource;
  return options;
}

// The status without what changes all the time.
std::string lasting_part(types::TrainingJobStatus status) {
  status.bound = status.bound.empty() || status.bound == "unknown" ? status.bound : "known";
  status.goodput.clear();
  status.efficiency.clear();
  status.summers.message.clear();
  return types::to_json(status).dump();
}

std::string lasting_part(types::ReductionPlan plan) {
  plan.status.steps = 0;
  plan.status.step_communication_seconds = plan.status.goodput_bytes_per_second = plan.status.efficiency = 0;
  plan.status.efficiency_basis.clear();
  // The bytes of a step, and so its bound, are means of the last minute.
  plan.spec.bytes_per_step = plan.spec.bytes_per_step > 0 ? 1 : 0;
  for (double* bound : {&plan.spec.bound_seconds, &plan.spec.bound_without_summers_seconds})
    *bound = *bound > 0 ? 1 : 0;
  plan.meta = {};
  return types::to_json(plan).dump();
}

// Of two errors the one that says more: the first.
void keep_first(absl::Status& first, const absl::Status& next) { first.Update(next); }

bool is_refusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status) || absl::IsInvalidArgument(status);
}

}  // namespace

JobReconciler::JobReconciler(Parts parts) : parts_(std::move(parts)) {}

kube::Result JobReconciler::reconcile(const std::string& key) {
  const auto job = parts_.cluster.job(key);
  if (job == nullptr) {
    end_session(key, "the job is gone");
    parts_.metrics.remove(key);
    const std::string ns = key.substr(0, key.find('/'));
    const absl::Status dropped = parts_.cluster.has_jobs(ns) ? absl::OkStatus() : parts_.identities.drop_bootstrap(ns);
    if (!dropped.ok()) return kube::Retry{dropped};
    return kube::Done{};
  }
  reconcile::Observed observed = parts_.cluster.observe(*job);
  observe_session(*job, observed);
  observed.wish = parts_.wishes(key);
  reconcile::Decision decision = reconcile::decide(observed, parts_.settings);
  absl::Status status = carry_out(*job, observed, decision);
  if (absl::IsNotFound(status) && parts_.cluster.job(key) == nullptr) status = absl::OkStatus();  // deleted meanwhile
  if (!status.ok()) return kube::Retry{status};
  parts_.metrics.update(*job, decision.status, observed.session.has_value() ? &*observed.session : nullptr);
  if (decision.look_again.has_value()) return kube::RequeueAfter{*decision.look_again};
  return kube::Done{};
}

void JobReconciler::observe_session(const types::TrainingJob& job, reconcile::Observed& observed) {
  const std::string name = reconcile::session_of(job);
  bool foreign = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(job.meta.key());
    if (found == sessions_.end()) return;
    foreign = found->second.name != name || found->second.job_uid != job.meta.uid;
  }
  if (foreign) {  // of an earlier attempt, or of a deleted job of that name
    end_session(job.meta.key(), "a new attempt begins");
    return;
  }
  observed.session = parts_.sessions.state(name);
  if (!observed.session.has_value() || !observed.session->outcome.has_value()) return;
  const absl::Duration now = parts_.env.clock->since_start();
  absl::MutexLock lock(&mutex_);
  Session& session = sessions_[job.meta.key()];
  if (!session.ended.has_value()) session.ended = now;
  observed.session_ended_for = now - *session.ended;
}

absl::Status JobReconciler::carry_out(const types::TrainingJob& job, const reconcile::Observed& observed,
                                      reconcile::Decision& decision) {
  GLN_ASSIGN_OR_RETURN(const bool confirmed, confirm(job, decision));
  if (!confirmed) return absl::AbortedError("the pod cache is behind: a pod that seemed to be gone is there");
  const bool next_attempt = decision.status.attempt != job.status.attempt;
  const bool first_look = !job.status.start_time.has_value() && !decision.create.empty();
  const bool next_summer = !decision.create_summers.empty();
  if (next_attempt || next_summer) {  // the new number must be on record before anything else happens
    GLN_RETURN_IF_ERROR(write_status(job, decision.status));
  }
  if (decision.end_session.has_value()) end_session(job.meta.key(), *decision.end_session);
  absl::Status status = make_pods(job, decision);
  if (status.ok()) status = make_summers(job, decision);
  if (status.ok()) status = release_pods(job, decision);
  if (status.ok() && decision.plan.has_value()) status = write_plan(observed, *decision.plan);
  if (status.ok() && decision.session.has_value()) status = keep_session(job, decision);
  keep_first(status, remove_pods(job, decision));
  // New pods bring the next look within a moment: it says what this one would, and a job costs one write less. A look
  // that is to be repeated has something to tell already, as that a pod was refused.
  const bool told_later = first_look && status.ok() && !decision.look_again.has_value();
  if (!next_attempt && !next_summer && !told_later) keep_first(status, write_status(job, decision.status));
  if (!status.ok()) return status;
  record_events(job, decision);
  if (!decision.remove_job) return absl::OkStatus();
  return parts_.client.remove(kube::training_jobs(), job.meta.ns, job.meta.name, {job.meta.uid, {}, false});
}

absl::StatusOr<bool> JobReconciler::confirm(const types::TrainingJob& job, const reconcile::Decision& decision) {
  for (const std::string& name : decision.confirm_missing) {
    const auto pod = parts_.client.get(kube::pods(), job.meta.ns, name);
    if (pod.ok()) return false;
    if (!absl::IsNotFound(pod.status())) return pod.status();
  }
  return true;
}

absl::Status JobReconciler::make_pods(const types::TrainingJob& job, reconcile::Decision& decision) {
  if (decision.create.empty()) return absl::OkStatus();
  absl::Status made = parts_.identities.ensure_bootstrap(job.meta.ns);
  if (made.ok() && decision.service && job.workers.replicas > 1) {
    made = parts_.client.apply(kube::services(), reconcile::worker_service(job), apply_options()).status();
  }
  for (const json& pod : decision.create) {
    if (!made.ok()) break;
    made = parts_.client.create(kube::pods(), pod).status();
    if (!absl::IsAlreadyExists(made)) continue;
    // Ours, not in the cache yet; or somebody else's, which then has to go first.
    made = absl::OkStatus();
    if (!decision.look_again.has_value() || kForeignPod < *decision.look_again) decision.look_again = kForeignPod;
  }
  if (!is_refusal(made)) return made;
  reconcile::note_refusal(job, made, parts_.env.clock->now(), decision);
  return absl::OkStatus();
}

// The job does without those that the API server refuses.
absl::Status JobReconciler::make_summers(const types::TrainingJob& job, reconcile::Decision& decision) {
  if (decision.create_summers.empty()) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(parts_.identities.ensure_bootstrap(job.meta.ns));
  for (const json& pod : decision.create_summers) {
    absl::Status made = parts_.client.create(kube::pods(), pod).status();
    if (made.ok() || absl::IsAlreadyExists(made)) continue;
    if (!is_refusal(made)) return made;
    decision.events.push_back({true, "SummerRefused", absl::StrCat("the API server refuses a summer: ", made.message()),
                               absl::IsResourceExhausted(made) ? "QuotaExceeded" : "PodRefused"});
  }
  return absl::OkStatus();
}

absl::Status JobReconciler::release_pods(const types::TrainingJob& job, const reconcile::Decision& decision) {
  for (const reconcile::PodRelease& release : decision.release) {
    json gates = json::array();
    for (const std::string& gate : release.gates) gates.push_back({{"name", gate}});
    const auto patched = parts_.client.merge_patch(kube::pods(), job.meta.ns, release.name,
                                                   {{"spec", {{"schedulingGates", std::move(gates)}}}});
    if (!patched.ok() && !absl::IsNotFound(patched.status())) return patched.status();
  }
  return absl::OkStatus();
}

absl::Status JobReconciler::write_plan(const reconcile::Observed& observed, const types::ReductionPlan& plan) {
  const bool same = observed.plan.has_value() && lasting_part(*observed.plan) == lasting_part(plan);
  const bool first = !observed.plan.has_value() || observed.plan->spec.attempt != plan.spec.attempt;
  if (same && !is_due(observed.job.meta.key(), "")) return absl::OkStatus();
  const json object = types::to_json(plan);
  if (!same) {
    json spec = object;
    spec.erase("status");
    GLN_RETURN_IF_ERROR(parts_.client.apply(kube::reduction_plans(), spec, apply_options()).status());
  }
  if (first && plan.spec.epoch == 0) return absl::OkStatus();  // nothing to say yet
  json status = object;
  status.erase("spec");
  return parts_.client.apply(kube::reduction_plans(), status, apply_options("status")).status();
}

absl::Status JobReconciler::keep_session(const types::TrainingJob& job, reconcile::Decision& decision) {
  const std::string& name = decision.session->job;
  GLN_RETURN_IF_ERROR(parts_.identities.ensure_bootstrap(job.meta.ns));
  coordinator::Service::JobOptions options;
  options.options = *decision.session;
  options.data_secret = parts_.identities.data_secret(name, job.meta.uid);
  options.may_resume = decision.may_resume;
  absl::Status added = parts_.sessions.add(options);
  if (!added.ok() && !absl::IsAlreadyExists(added)) return added;
  absl::MutexLock lock(&mutex_);
  Session& session = sessions_[job.meta.key()];
  session.name = name;
  session.job_uid = job.meta.uid;
  tell_session(session, decision);
  return absl::OkStatus();
}

// What is told twice would count twice: each once per session, and bandwidths now and then.
void JobReconciler::tell_session(Session& session, reconcile::Decision& decision) {
  const absl::Duration now = parts_.env.clock->since_start();
  if (decision.session_summers.has_value()) {
    // Once it has a plan it takes summers as they come.
    parts_.sessions.set_summers(session.name, *decision.session_summers).IgnoreError();
  }
  for (const reconcile::EndedMember& member : decision.ended) {
    if (!session.told.emplace(member.role, member.index).second) continue;
    parts_.sessions.ended(session.name, member.role, member.index, member.how);
  }
  for (const reconcile::SummerRelease& release : decision.release_summers) {
    if (session.released.contains(release.index)) continue;
    if (!parts_.sessions.release_summer(session.name, release.index).ok()) continue;  // it is not there, or not yet
    session.released.insert(release.index);
    decision.events.push_back(release.note);
  }
  for (const reconcile::MemberBandwidth& member : decision.bandwidths) {
    const auto [told, is_new] = session.bandwidth_told.try_emplace({member.role, member.index}, now);
    if (!is_new && now - told->second < kBandwidthPause) continue;
    told->second = now;
    const absl::Status set =
        parts_.sessions.set_bandwidth(session.name, member.role, member.index, member.bits_per_second);
    if (!set.ok()) parts_.env.log->debug("a bandwidth is not taken", "job", session.name, "why", set.message());
  }
}

void JobReconciler::end_session(const std::string& key, const std::string& why) {
  std::string name;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) return;
    name = found->second.name;
    sessions_.erase(found);
  }
  if (!name.empty()) parts_.sessions.remove(name, absl::CancelledError(why));
}

absl::Status JobReconciler::remove_pods(const types::TrainingJob& job, const reconcile::Decision& decision) {
  absl::Status status;
  for (const reconcile::PodRemoval& removal : decision.remove) {
    keep_first(status, parts_.client.remove(kube::pods(), job.meta.ns, removal.name, {removal.uid, {}, false}));
  }
  return status;
}

// True if more than figures changed, or figures were last written long ago.
bool JobReconciler::is_due(const std::string& key, const std::string& lasting) {
  const absl::Duration now = parts_.env.clock->since_start();
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return true;
  Session& session = found->second;
  if (lasting.empty()) return now - session.reported >= kFigureInterval;
  if (session.status_written == lasting && now - session.reported < kFigureInterval) return false;
  session.status_written = lasting;
  session.reported = now;
  return true;
}

absl::Status JobReconciler::write_status(const types::TrainingJob& job, const types::TrainingJobStatus& status) {
  const json wanted = types::to_json(status);
  if (wanted == types::to_json(job.status)) return absl::OkStatus();
  if (lasting_part(status) == lasting_part(job.status) && !is_due(job.meta.key(), lasting_part(status))) {
    return absl::OkStatus();
  }
  const kube::Object object = {{"apiVersion", types::kApiVersion},
                               {"kind", "TrainingJob"},
                               {"metadata",
                                {{"name", job.meta.name},
                                 {"namespace", job.meta.ns},
                                 {"uid", job.meta.uid},
                                 {"resourceVersion", job.meta.resource_version}}},
                               {"status", wanted}};
  // All of it is ours, so that nothing needs to be merged: cheaper for the API server than an apply.
  return parts_.client.replace(kube::training_jobs(), object, "status").status();
}

void JobReconciler::record_events(const types::TrainingJob& job, const reconcile::Decision& decision) {
  const kube::ObjectReference about{types::kApiVersion, "TrainingJob", job.meta.ns, job.meta.name, job.meta.uid};
  for (const reconcile::EventNote& note : decision.events) {
    if (!note.cause.empty()) parts_.metrics.count_change(job, note.reason, note.cause);
    if (note.warning) {
      parts_.events.warning(about, note.reason, note.message);
    } else {
      parts_.events.normal(about, note.reason, note.message);
    }
  }
}

}  // namespace gleaner::operation
