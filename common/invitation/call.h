// Call is a waiting summer's end of the stream of one invitation: a reactor whose callbacks come from gRPC's threads.
// It passes the invitation to its Acceptance, which answers it.
//
// gRPC keeps a call alive until OnDone(). Public functions are thread safe.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/invitation/acceptance.h"
#include "common/invitation/handshake.h"

namespace gleaner::invitation {

// Time within which an inviter must connect, and then must prove that it knows the token.
inline constexpr int kProofMs = 10'000;

class Call final : public Acceptance::Reactor {
 public:
  // Sends the challenge and reads the invitation. `token`: the summer's. `nonce`: new for each call.
  static Call* start(std::shared_ptr<Acceptance> acceptance, grpc::CallbackServerContext* context, std::string token,
                     std::string nonce);

  const SummerHandshake& handshake() const { return handshake_; }
  const std::string& peer() const { return peer_; }  // as gRPC names it

  // Lifts the limit of time: the inviter has proved that it knows the token.
  void on_checked() { alarm_.Cancel(); }
  void send(v1::InviteAnswer answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the stream with this status, after the answers that were sent before.
  void end(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Call(std::shared_ptr<Acceptance> acceptance, grpc::CallbackServerContext* context, std::string token,
       std::string nonce);
  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Call> self() ABSL_LOCKS_EXCLUDED(mutex_);
  void advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Acceptance> acceptance_;
  const SummerHandshake handshake_;
  const std::string peer_;
  v1::Invite invite_;
  grpc::Alarm alarm_;
  absl::Mutex mutex_;
  std::shared_ptr<Call> self_ ABSL_GUARDED_BY(mutex_);            // null after OnDone()
  std::deque<v1::InviteAnswer> answers_ ABSL_GUARDED_BY(mutex_);  // the first one is being written if writing_
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gleaner::invitation
