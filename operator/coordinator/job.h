// One job of a Service: its rounds and the streams of its members.
//
// Not thread safe: Jobs calls it under its lock. Streams come here once their members have shown who they are.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "operator/coordinator/metrics.h"
#include "operator/coordinator/rounds.h"
#include "operator/coordinator/service.h"
#include "operator/coordinator/stream.h"
#include "operator/coordinator/tracing.h"

namespace gleaner::coordinator {

// What a stream's two ends challenged each other with.
struct Nonces {
  std::string coordinator;
  std::string member;
};

class Job {
 public:
  // `nonce`: of this job here, for the secret of its data connections. `session` and `term`: as Origin says. `metrics`
  // may be null.
  Job(const Env& env, Service::JobOptions options, std::string nonce, std::string session, uint64_t term,
      std::shared_ptr<Metrics> metrics);

  const std::string& name() const { return options_.options.job; }
  const std::string& token() const { return options_.token; }

  void admit(std::shared_ptr<Stream> stream, Nonces nonces, const Identity& identity,
             const std::optional<Resume>& resume);
  // Somebody wanted in and could not show that it belongs here.
  void refused();
  void hear(StreamId stream, const v1::MemberMessage& message);
  void closed(StreamId stream, const absl::Status& why);
  // Often enough is ten times a second.
  void tick();
  void stop(const absl::Status& why);
  absl::Status set_summers(uint32_t summers);
  absl::Status release_summer(uint32_t index);
  absl::Status set_bandwidth(Role role, uint32_t index, double bits_per_second);
  void ended(Role role, uint32_t index, const absl::Status& how);
  void exited(uint32_t worker, uint32_t local_rank, const RankExit& exit);

  // The job is over, here at least: ends with `why` if it goes on. Gives back its metrics.
  std::shared_ptr<Metrics> remove(const absl::Status& why);
  // Lets go of all streams; who still listens reads `why`.
  void drop(const absl::Status& why);
  // It has ended, and everyone has heard or had the time to.
  bool settled() const { return settled_; }
  // Whether state() has something new since the last call.
  bool take_changed();
  JobState state() const;
  const std::optional<absl::Status>& outcome() const { return rounds_.outcome(); }

 private:
  struct Peer {
    std::shared_ptr<Stream> stream;
    Nonces nonces;
    Leaving leaves;  // once it has said so
  };
  void dispatch(StreamId stream, const v1::MemberMessage& message);
  void admit_observer(StreamId stream);
  void ask(const v1::Observe& what);
  void let_leave(StreamId stream, const v1::Leave& leave);
  void update_metrics();
  void release_leaving();
  void carry_out();
  void tell(StreamId stream, const Message& message);
  Stream::Outgoing encode_for(const Peer& peer, const Message& message);
  v1::CoordinatorMessage welcome(const Peer& peer, const Welcome& told) const;
  void note_end();
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const Service::JobOptions options_;
  const std::string nonce_;
  std::shared_ptr<Metrics> metrics_;  // null once removed
  Rounds rounds_;
  Actions actions_;
  Tracing tracing_{&rounds_};
  Tracing::Sends trace_sends_;
  absl::flat_hash_map<StreamId, Peer> peers_;
  std::shared_ptr<const plan::Plan> encoded_plan_;  // the same bytes for all members
  Stream::Outgoing encoded_prepare_;
  uint32_t refused_ = 0;
  bool changed_ = true;    // state(), not yet told
  bool reported_ = false;  // state().summary, to be told with the next slow tick
  bool stale_ = true;      // metrics
  absl::Duration next_tick_;
  absl::Duration next_slow_tick_;
  std::optional<absl::Duration> ended_at_;
  bool settled_ = false;
};

}  // namespace gleaner::coordinator
