// Implements Service: the jobs, the streams of members that have not joined yet, and the thread that moves them
// ("gln-jobs").
//
// A stream is a stranger's until its member has shown who it is; then it belongs to a Job, for good. One lock guards
// everything. It is held for one event at a time, which costs microseconds, so public calls do not wait for long.
// on_changed and Authenticator may call back into the service: on_changed is called without the lock, and the
// Authenticator's answer is processed later.
#pragma once

#include <prometheus/counter.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "operator/coordinator/events.h"
#include "operator/coordinator/job.h"
#include "operator/coordinator/port.h"
#include "operator/coordinator/service.h"

namespace gleaner::coordinator {

class Jobs final : public Service {
 public:
  // `sole`: the only job there will ever be; members of others are told so at once. Empty: jobs come and go.
  static absl::StatusOr<std::unique_ptr<Jobs>> start(const Env& env, ServiceOptions options, std::string sole);
  // Jobs go on without this coordinator: their members are not told that they ended.
  ~Jobs() override;

  Address address() const override { return port_->address(); }
  absl::Status add(const JobOptions& job) override ABSL_LOCKS_EXCLUDED(series_mutex_, mutex_);
  // With metrics of the caller's. Null: those of the service's registry, if it has one.
  absl::Status add(const JobOptions& job, std::shared_ptr<Metrics> metrics) ABSL_LOCKS_EXCLUDED(series_mutex_, mutex_);
  void remove(const std::string& job, const absl::Status& why) override ABSL_LOCKS_EXCLUDED(series_mutex_, mutex_);
  absl::Status set_summers(const std::string& job, uint32_t summers) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status release_summer(const std::string& job, uint32_t index) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status set_bandwidth(const std::string& job, Role role, uint32_t index, double bits_per_second) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ended(const std::string& job, Role role, uint32_t index, const absl::Status& how) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // As Core::on_exited().
  void exited(const std::string& job, uint32_t worker, uint32_t local_rank, const RankExit& exit)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<JobState> state(const std::string& job) const override ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a job that stays.
  void stop(const std::string& job, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until a job that is not removed meanwhile has ended and everyone has heard it (or had 2 s for that).
  void wait(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<absl::Status> outcome(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Stranger {
    std::shared_ptr<Stream> stream;
    Nonces nonces;
    absl::Duration since;
    // Once it has shown a bearer token that is being looked at:
    std::shared_ptr<Job> job;
    Identity identity;
    std::optional<Resume> resume;
  };
  struct Known {
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Job> job;
  };

  Jobs(const Env& env, ServiceOptions options, std::string sole);
  void run() ABSL_LOCKS_EXCLUDED(mutex_);
  void handle(Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void open(std::shared_ptr<Stream> stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void on_first_message(StreamId id, const v1::MemberMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whose it is. A token's proof is checked here, a bearer token only sent off (Stranger::job).
  absl::StatusOr<std::shared_ptr<Job>> check(StreamId id, Stranger& stranger, const v1::Join& join)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status check_proof(const Job& job, const Stranger& stranger, const v1::Join& join) const;
  absl::Status ask(StreamId id, const Job& job, const Stranger& stranger, const std::string& bearer);
  void on_authenticated(StreamId id, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void admit(StreamId id, std::shared_ptr<Job> job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void refuse(StreamId id, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drop_strangers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Job> find(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const ServiceOptions options_;
  const std::string sole_;
  const std::shared_ptr<Events> events_ = std::make_shared<Events>();
  std::unique_ptr<Port> port_;
  prometheus::Counter* turned_away_ = nullptr;  // null without a registry

  // While series come and go, which takes milliseconds where there are thousands of jobs.
  absl::Mutex series_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;  // before that of events_, and before those of streams
  absl::flat_hash_map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Job>> removed_ ABSL_GUARDED_BY(mutex_);  // until their members have heard
  absl::flat_hash_map<StreamId, Stranger> strangers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<StreamId, Known> known_ ABSL_GUARDED_BY(mutex_);  // until closed
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace gleaner::coordinator
