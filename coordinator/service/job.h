// Job runs one job of a Service: it passes the messages of joined members to the job's Rounds, and sends the resulting
// messages to them.
//
// Job is not thread safe; Jobs calls it under its lock. admit() takes over a stream once its member is authenticated.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/control/handshake.h"
#include "common/control/member_messages.h"
#include "coordinator/core/rounds.h"
#include "coordinator/service/metrics.h"
#include "coordinator/service/service.h"
#include "coordinator/service/stream.h"
#include "coordinator/service/tracing.h"
#include "coordinator/service/welcome.h"

namespace gleaner::coordinator {

class Job : public std::enable_shared_from_this<Job> {
 public:
  // `nonce`: random. The secret of the data connections is derived from it if `session` is empty or the job is elastic.
  // `session` and `term`: see Origin. `metrics` may be null. `model` has another thread carry out a request; the answer
  // goes to on_modelled().
  using Model = std::function<void(std::weak_ptr<Job> job, ModelRequest request)>;
  Job(const Env& env, Service::JobOptions options, std::string nonce, std::string session, uint64_t term,
      std::shared_ptr<Metrics> metrics, Model model);

  const std::string& name() const { return options_.options.job; }
  const std::string& token() const { return options_.token; }

  void admit(std::shared_ptr<Stream> stream, Nonces nonces, const Identity& identity,
             const std::optional<Resume>& resume);
  // Counts a member that the authentication has refused.
  void on_refused();
  void on_message(StreamId stream, const v1::MemberMessage& message);
  void on_closed(StreamId stream, const absl::Status& why);
  // To be called ten times a second.
  void tick();
  void stop(const absl::Status& why);
  absl::Status set_summers(uint32_t summers);
  absl::Status release_summer(uint32_t index);
  absl::Status set_bandwidth(Role role, uint32_t index, double bits_per_second);
  absl::Status set_summer_switch(uint32_t index, uint32_t at);
  void on_ended(Role role, uint32_t index, const absl::Status& how);
  void on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit);
  void on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models);

  // Ends the job with `why`, if it has not ended, and returns its metrics.
  std::shared_ptr<Metrics> remove(const absl::Status& why);
  // Ends all streams with `why` and forgets them.
  void drop(const absl::Status& why);
  // Returns whether the job has ended and each member has closed its stream or been disconnected 2 s after the end.
  bool settled() const { return settled_; }
  // Returns whether state() has changed since the last call.
  bool take_changed();
  JobState state() const;
  const std::optional<absl::Status>& outcome() const { return rounds_.outcome(); }

 private:
  struct Peer {
    std::shared_ptr<Stream> stream;
    Nonces nonces;
    Leaving leaves;  // the content of the member's last Leave
  };
  void dispatch(StreamId stream, const v1::MemberMessage& message);
  void handle(StreamId stream, const Heartbeat& heartbeat);
  void handle(StreamId stream, const control::Declare& declare);
  void handle(StreamId stream, const control::Acknowledgement& answer);
  void handle(StreamId stream, const control::Refusal& answer);
  void handle(StreamId stream, const Report& report);
  void handle(StreamId stream, const control::Begun& begun);
  void handle(StreamId stream, const control::PushPulls& answer);
  void handle(StreamId stream, const control::Fault& fault);
  void handle(StreamId stream, const control::Leave& leave);
  void handle(StreamId stream, const control::Recalled& recalled);
  void admit_observer(StreamId stream);
  void send_summary(StreamId stream);
  void welcome_observer(const Peer& peer);
  void on_observe(const v1::Observe& observe);
  void update_metrics();
  void forward_held_leaves();
  void carry_out();
  void send(StreamId stream, const Message& message);
  Stream::Outgoing encode_for(const Peer& peer, const Message& message);
  v1::CoordinatorMessage encode(const Peer& peer, const Message& message) const;
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const Service::JobOptions options_;
  const std::string nonce_;
  std::shared_ptr<Metrics> metrics_;  // null after remove()
  const Model model_;
  Rounds rounds_;
  Actions actions_;
  Tracing tracing_{&rounds_};
  Tracing::Sends trace_sends_;
  absl::flat_hash_map<StreamId, Peer> peers_;
  // The plan in encoded_prepare_, which is serialized once for all members.
  std::shared_ptr<const plan::Plan> encoded_plan_;
  Stream::Outgoing encoded_prepare_;
  uint32_t refused_ = 0;
  bool changed_ = true;    // state() has changed since take_changed()
  bool reported_ = false;  // a report has come, so the next slow tick sets changed_
  bool stale_ = true;      // metrics_ lack the latest state
  absl::Duration next_tick_;
  absl::Duration next_slow_tick_;
  std::optional<absl::Duration> ended_at_;
  bool settled_ = false;
};

}  // namespace gleaner::coordinator
