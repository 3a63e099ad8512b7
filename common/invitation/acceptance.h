// Acceptance is the state that the port of a waiting summer and its calls share: which invitation the summer has
// accepted and serves. It decides on each invitation.
//
// Thread safe. Its lock is acquired before those of calls.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/env.h"
#include "common/invitation/invitation.h"
#include "common/proto/invitation.grpc.pb.h"

namespace gleaner::invitation {

class Call;

class Acceptance {
 public:
  Acceptance(const Env& env, std::string token) : env_(env), token_(std::move(token)) {}

  using Reactor = grpc::ServerBidiReactor<v1::Invite, v1::InviteAnswer>;

  // Returns the reactor of a new stream, which refuses the inviter if there are too many streams.
  Reactor* open(std::shared_ptr<Acceptance> self, grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mutex_);
  // Events of a call. on_gone(): the inviter is gone, or the stream has ended. on_done(): gRPC is done with the call.
  void on_invite(const std::shared_ptr<Call>& call, const v1::Invite& invite) ABSL_LOCKS_EXCLUDED(mutex_);
  void on_gone(const Call* call) ABSL_LOCKS_EXCLUDED(mutex_);
  void on_done() ABSL_LOCKS_EXCLUDED(mutex_);

  // Functions of InvitationPort.
  std::optional<Invitation> next() ABSL_LOCKS_EXCLUDED(mutex_);
  void on_inviter_gone(std::function<void()> action) ABSL_LOCKS_EXCLUDED(mutex_);
  void joined() ABSL_LOCKS_EXCLUDED(mutex_);
  void end(const absl::Status& how) ABSL_LOCKS_EXCLUDED(mutex_);
  void stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<Invitation> check(const Call& call, const v1::Invite& invite) const;

  const Env env_;
  const std::string token_;
  absl::Mutex mutex_;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Invitation> accepted_ ABSL_GUARDED_BY(mutex_);  // of `serving_`, until next() returns it
  std::string job_ ABSL_GUARDED_BY(mutex_);                     // of `serving_`
  std::shared_ptr<Call> serving_ ABSL_GUARDED_BY(mutex_);       // null: the summer waits
  bool is_gone_ ABSL_GUARDED_BY(mutex_) = false;                // the inviter of `serving_`
  std::function<void()> on_gone_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::invitation
