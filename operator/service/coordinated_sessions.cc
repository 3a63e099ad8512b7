#include "operator/service/coordinated_sessions.h"

#include "common/base/utf8.h"
#include "common/fabric/network.h"
#include "common/strategy/rank_maps.h"
#include "operator/reconcile/pods.h"

namespace gleaner::operation {
namespace {

// The shortest time between two bandwidths of one member: each leads to a new plan.
constexpr absl::Duration kBandwidthPause = absl::Seconds(10);

// gRPC drops a status whose text takes more than the 8 KiB that it allows for all headers.
constexpr size_t kMaxReason = 2048;

}  // namespace

CoordinatedSessions::State CoordinatedSessions::observe(const api::TrainingJob& job) {
  {
    absl::MutexLock lock(&mutex_);
    if (!sessions_.contains(job.meta.key())) return {};
  }
  State observed{service_.state(reconcile::session_of(job)), absl::ZeroDuration()};
  if (!observed.state.has_value() || !observed.state->outcome.has_value()) return observed;
  const absl::Duration now = env_.clock->since_start();
  absl::MutexLock lock(&mutex_);
  CoordinatedSession& session = sessions_[job.meta.key()];
  if (!session.ended.has_value()) session.ended = now;
  observed.ended_for = now - *session.ended;
  return observed;
}

bool CoordinatedSessions::is_of(const api::TrainingJob& job, const CoordinatedSession& session) {
  return session.name == reconcile::session_of(job) && session.job_uid == job.meta.uid;
}

bool CoordinatedSessions::is_open(const api::TrainingJob& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(job.meta.key());
  return found != sessions_.end() && is_of(job, found->second);
}

bool CoordinatedSessions::is_outdated(const api::TrainingJob& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(job.meta.key());
  if (found == sessions_.end()) return false;
  return !is_of(job, found->second);
}

absl::Status CoordinatedSessions::open(const api::TrainingJob& job, const coordinator::Service::JobOptions& options) {
  absl::Status added = service_.add(options);
  if (!added.ok() && !absl::IsAlreadyExists(added)) return added;
  absl::MutexLock lock(&mutex_);
  CoordinatedSession& session = sessions_[job.meta.key()];
  session.name = options.options.job;
  session.job_uid = job.meta.uid;
  session.network = options.options.reduction.network;
  return absl::OkStatus();
}

std::vector<reconcile::EventNote> CoordinatedSessions::tell(const std::string& job_key,
                                                            const reconcile::TellSession& facts) {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(job_key);
  if (found == sessions_.end()) return {};
  CoordinatedSession& session = found->second;
  if (facts.summers.has_value()) {
    // Fails once the session has a plan. From then on summers may join at any time, so the error is ignored.
    service_.set_summers(session.name, *facts.summers).IgnoreError();
  }
  report_switches(session, facts.summer_groups);
  report_ends(session, facts.ended);
  std::vector<reconcile::EventNote> events = release_summers(session, facts.release);
  report_bandwidths(session, facts.bandwidths);
  return events;
}

void CoordinatedSessions::report_ends(CoordinatedSession& session, const std::vector<reconcile::EndedMember>& ended) {
  for (const reconcile::EndedMember& member : ended) {
    if (!session.reported_ends.emplace(member.role, member.index).second) continue;
    service_.ended(session.name, member.role, member.index, member.how);
  }
}

std::vector<reconcile::EventNote> CoordinatedSessions::release_summers(
    CoordinatedSession& session, const std::vector<reconcile::SummerRelease>& releases) {
  std::vector<reconcile::EventNote> events;
  for (const reconcile::SummerRelease& release : releases) {
    if (session.released.contains(release.index)) continue;
    if (!service_.release_summer(session.name, release.index).ok()) continue;  // the summer has not joined, or is gone
    session.released.insert(release.index);
    events.push_back(release.note);
  }
  return events;
}

void CoordinatedSessions::report_bandwidths(CoordinatedSession& session,
                                            const std::vector<reconcile::MemberBandwidth>& bandwidths) {
  const absl::Duration now = env_.clock->since_start();
  for (const reconcile::MemberBandwidth& member : bandwidths) {
    const auto [reported, is_new] = session.reported_bandwidths.try_emplace({member.role, member.index}, now);
    if (!is_new && now - reported->second < kBandwidthPause) continue;
    reported->second = now;
    const absl::Status set = service_.set_bandwidth(session.name, member.role, member.index, member.bits_per_second);
    if (!set.ok()) {
      env_.log->debug("the coordinator refuses a member's bandwidth", "job", session.name, "why", set.message());
    }
  }
}

void CoordinatedSessions::report_switches(CoordinatedSession& session,
                                          const std::vector<reconcile::SummerGroups>& summers) {
  if (session.network == nullptr) return;
  for (const reconcile::SummerGroups& summer : summers) {
    if (session.reported_switches.contains(summer.index)) continue;
    const uint32_t at = fabric::switch_of(session.network->topology, summer.names);
    const absl::Status set = service_.set_summer_switch(session.name, summer.index, at);
    if (!set.ok()) {
      env_.log->debug("the coordinator refuses a summer's switch", "job", session.name, "why", set.message());
      continue;
    }
    session.reported_switches.insert(summer.index);
  }
}

void CoordinatedSessions::end(const std::string& job_key, const std::string& why) {
  std::string name;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(job_key);
    if (found == sessions_.end()) return;
    name = found->second.name;
    sessions_.erase(found);
  }
  if (!name.empty()) service_.remove(name, absl::CancelledError(shortened(why, kMaxReason)));
}

}  // namespace gleaner::operation
