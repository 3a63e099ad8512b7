// A job's coordinator as a gRPC server: a Core, the streams of its members, and the token check between them.
//
// Threads: gRPC's read the streams; one of its own ("gln-job") owns the core and takes everything in turn. The public
// functions are thread safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "operator/coordinator/core.h"
#include "operator/coordinator/metrics.h"
#include "operator/coordinator/stream.h"

namespace gleaner::coordinator {

class Server final : private Inbox, private v1::Coordinator::CallbackService {
 public:
  // `metrics` may be null, and outlives the server. AlreadyExists: the port is in use; InvalidArgument: options out of
  // range, or `listen` is no address of this machine.
  static absl::StatusOr<std::unique_ptr<Server>> start(const Env& env, const Options& options, const std::string& token,
                                                       const Address& listen, Metrics* metrics);
  ~Server() override;

  Address address() const { return address_; }  // with the port in use

  // Ends the job with an error, if it goes on.
  void stop(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // None while the job goes on; OK when every worker left well.
  std::optional<absl::Status> outcome() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for that, and until everyone has heard it (or 2 s).
  absl::Status wait() ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the job failed, as far as one rank or summer is known to be the cause: plan index and local rank.
  struct Culprit {
    uint32_t member = 0;
    uint32_t local_rank = 0;
  };
  std::optional<Culprit> culprit() const ABSL_LOCKS_EXCLUDED(mutex_);
  Summary summary() const ABSL_LOCKS_EXCLUDED(mutex_);  // once there is an outcome

 private:
  struct Opened {
    std::shared_ptr<Stream> stream;
  };
  struct Closed {
    absl::Status why;
  };
  struct Stopped {
    absl::Status why;
  };
  struct Event {
    StreamId stream = 0;
    std::variant<Opened, v1::MemberMessage, Closed, Stopped> what;
  };
  // A stream as the job's thread knows it.
  struct Peer {
    std::shared_ptr<Stream> stream;
    std::string nonce;         // what we challenged it with
    std::string member_nonce;  // what it challenged us with; empty: it has not proved anything yet
    absl::Duration since;
  };

  Server(const Env& env, const Options& options, std::string token, Metrics* metrics);
  absl::Status listen(const Address& address);

  // gRPC's threads.
  grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>* Join(
      grpc::CallbackServerContext* context) override;
  void on_message(StreamId stream, v1::MemberMessage message) override;
  void on_closed(StreamId stream, const absl::Status& why) override;
  void post(Event event) ABSL_LOCKS_EXCLUDED(mutex_);

  // The job's thread.
  void run();
  std::vector<Event> next_events() ABSL_LOCKS_EXCLUDED(mutex_);
  void handle(Event& event);
  void open(std::shared_ptr<Stream> stream);
  void admit(StreamId id, Peer& peer, const v1::MemberMessage& message);
  absl::StatusOr<Identity> check(Peer& peer, const v1::Join& join) const;
  void hear(StreamId id, const v1::MemberMessage& message);
  void drop_strangers();
  void carry_out();
  void tell(StreamId id, const Message& message);
  Stream::Outgoing encode(const Peer& peer, const Message& message);
  void publish() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const Options options_;
  const std::string token_;
  Metrics* const metrics_;
  Address address_;
  std::unique_ptr<grpc::Server> grpc_;

  // The job's thread's.
  std::string job_nonce_;
  Core core_;
  Actions actions_;
  absl::flat_hash_map<StreamId, Peer> peers_;
  std::shared_ptr<const plan::Plan> encoded_plan_;  // the same message for all members
  Stream::Outgoing encoded_prepare_;

  mutable absl::Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  StreamId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
  std::optional<Culprit> culprit_ ABSL_GUARDED_BY(mutex_);
  Summary summary_ ABSL_GUARDED_BY(mutex_);
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // the job's thread has ended
  std::thread thread_;
};

}  // namespace gleaner::coordinator
