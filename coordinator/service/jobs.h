// Jobs implements Service. It holds the jobs, the streams of members that have not joined yet, and the thread
// ("gln-jobs") that processes all events.
//
// A stream is *new* until its member is authenticated; from then on it belongs to one Job. One lock guards all data.
// The thread holds it for one event, or for one tick of all jobs, at a time, so public calls do not wait for long. It
// calls on_changed without the lock, so on_changed may call the service. It calls Authenticator::authenticate() under
// the lock, so authenticate() must not call the service; the authenticator's answer becomes an event.
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
#include "coordinator/service/event_queue.h"
#include "coordinator/service/job.h"
#include "coordinator/service/model_thread.h"
#include "coordinator/service/port.h"
#include "coordinator/service/service.h"

namespace gleaner::coordinator {

class Jobs final : public Service {
 public:
  // `sole`: the name of the only job that the service will ever have; a member of another job is refused and does not
  // try again. Empty: jobs are added and removed at any time.
  static absl::StatusOr<std::unique_ptr<Jobs>> start(const Env& env, ServiceOptions options, std::string sole);
  // Ends all streams with Unavailable. The jobs do not end: members go on without this coordinator.
  ~Jobs() override;

  Address address() const override { return port_->address(); }
  absl::Status add(const JobOptions& job) override ABSL_LOCKS_EXCLUDED(series_mutex_, mutex_);
  // Adds a job with the caller's metrics. Null: with metrics in the service's registry, if it has one.
  absl::Status add(const JobOptions& job, std::shared_ptr<Metrics> metrics) ABSL_LOCKS_EXCLUDED(series_mutex_, mutex_);
  void remove(const std::string& job, const absl::Status& why) override ABSL_LOCKS_EXCLUDED(series_mutex_, mutex_);
  absl::Status set_summers(const std::string& job, uint32_t summers) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status release_summer(const std::string& job, uint32_t index) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status set_bandwidth(const std::string& job, Role role, uint32_t index, double bits_per_second) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status set_summer_switch(const std::string& job, uint32_t index, uint32_t at) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ended(const std::string& job, Role role, uint32_t index, const absl::Status& how) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // See Core::on_exited().
  void exited(const std::string& job, uint32_t worker, uint32_t local_rank, const RankExit& exit)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<JobState> state(const std::string& job) const override ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a job with an error, and keeps its state for state().
  void stop(const std::string& job, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the job has ended and each member has closed its stream, or been disconnected 2 s after the end. The
  // job must not be removed meanwhile.
  void wait(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<absl::Status> outcome(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A stream whose member is not authenticated.
  struct NewStream {
    std::shared_ptr<Stream> stream;
    Nonces nonces;
    absl::Duration since;
    std::shared_ptr<Job> job;  // set while the authenticator checks a bearer token
    Identity identity;
    std::optional<Resume> resume;
  };
  struct JoinedStream {
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Job> job;
  };

  Jobs(const Env& env, ServiceOptions options, std::string sole);
  void run() ABSL_LOCKS_EXCLUDED(mutex_);
  void handle(Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void open(std::shared_ptr<Stream> stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void on_first_message(StreamId id, const v1::MemberMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the job that the member of a new stream asks to join. Checks a proof in this call. Passes a bearer token to
  // the authenticator, and sets NewStream::job.
  absl::StatusOr<std::shared_ptr<Job>> find_job(StreamId id, NewStream& opened, const control::Join& join)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status check_proof(const Job& job, const NewStream& opened, const control::Join& join) const;
  absl::Status begin_authentication(StreamId id, const Job& job, const NewStream& opened, const std::string& bearer);
  void on_authenticated(StreamId id, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void admit(StreamId id, std::shared_ptr<Job> job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void refuse(StreamId id, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drop_late_streams() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Job> find(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const ServiceOptions options_;
  const std::string sole_;
  const std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
  std::unique_ptr<Port> port_;
  std::unique_ptr<ModelThread> models_;
  prometheus::Counter* turned_away_ = nullptr;  // null without a registry

  // Held while metric series are added or removed. Removal takes milliseconds with thousands of jobs, so it happens
  // without mutex_.
  absl::Mutex series_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;  // acquired before the locks of events_ and of streams
  absl::flat_hash_map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Job>> removed_ ABSL_GUARDED_BY(mutex_);  // until their members have heard the outcome
  absl::flat_hash_map<StreamId, NewStream> new_streams_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<StreamId, JoinedStream> joined_streams_ ABSL_GUARDED_BY(mutex_);  // until their streams close
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace gleaner::coordinator
