// CoordinatedSessions holds the coordinator sessions of jobs that this process has opened, at most one per job. It
// reports each fact about a session's members only once. Thread safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/api/training_job.h"
#include "common/base/env.h"
#include "coordinator/service/service.h"
#include "operator/reconcile/steps.h"

namespace gleaner::operation {

class CoordinatedSessions {
 public:
  // `service` must outlive this object.
  CoordinatedSessions(const Env& env, coordinator::Service& service) : env_(env), service_(service) {}

  struct State {
    std::optional<coordinator::JobState> state;
    absl::Duration ended_for;  // time since the session got its outcome
  };
  // Returns the state of the session of the job's attempt; none if this object has not opened it.
  State observe(const api::TrainingJob& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether the job's session belongs to an earlier attempt, or to a deleted job of the same name.
  bool is_outdated(const api::TrainingJob& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether this object has opened the session of the job's attempt.
  bool is_open(const api::TrainingJob& job) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens the session of the job's attempt if it is not open.
  absl::Status open(const api::TrainingJob& job, const coordinator::Service::JobOptions& options)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reports `facts` about members to the job's session, which open() has opened. Returns the Events of the summers that
  // this call has released.
  std::vector<reconcile::EventNote> tell(const std::string& job_key, const reconcile::TellSession& facts)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the job's session for all its members, with the reason `why`, if the job has a session.
  void end(const std::string& job_key, const std::string& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Member = std::pair<coordinator::Role, uint32_t>;
  struct CoordinatedSession {
    std::string name;
    std::string job_uid;
    std::optional<absl::Duration> ended;        // when its outcome was first seen
    absl::flat_hash_set<Member> reported_ends;  // members whose end was reported to the service
    absl::flat_hash_set<uint32_t> released;     // summers whose release was requested from the service
    // Time of the last report to the service, by member.
    absl::flat_hash_map<Member, absl::Duration> reported_bandwidths;
    std::shared_ptr<const strategy::JobNetwork> network;  // of the session; null: it has none
    absl::flat_hash_set<uint32_t> reported_switches;      // summers whose switch was reported to the service
  };

  // Returns whether the session is that of the job's attempt.
  static bool is_of(const api::TrainingJob& job, const CoordinatedSession& session);
  void report_ends(CoordinatedSession& session, const std::vector<reconcile::EndedMember>& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<reconcile::EventNote> release_summers(CoordinatedSession& session,
                                                    const std::vector<reconcile::SummerRelease>& releases)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void report_bandwidths(CoordinatedSession& session, const std::vector<reconcile::MemberBandwidth>& bandwidths)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Reports at which switch of the session's network each summer is, once: its pod stays on its machine.
  void report_switches(CoordinatedSession& session, const std::vector<reconcile::SummerGroups>& summers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Env env_;
  coordinator::Service& service_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, CoordinatedSession> sessions_ ABSL_GUARDED_BY(mutex_);  // by job key
};

}  // namespace gleaner::operation
