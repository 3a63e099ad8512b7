// InvitationPort is the gRPC port of a waiting summer: it takes the invitation of one job at a time.
//
// The port refuses an inviter that does not prove within 10 s that it knows the token, and invitations while the summer
// serves another job. It holds at most 64 streams, so peers without the token can delay invitations, and no more.
//
// Threads: gRPC's threads process the streams. One thread calls next(), joined() and end(); any thread may call stop().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "common/invitation/invitation.h"

namespace gleaner::invitation {

class InvitationPort {
 public:
  // `token`: the summer's. ResourceExhausted: there are too few threads for gRPC. AlreadyExists: the port is in use.
  // InvalidArgument: `listen` is not an address of this machine.
  static absl::StatusOr<std::unique_ptr<InvitationPort>> open(const Env& env, const Address& listen,
                                                              const std::string& token);
  virtual ~InvitationPort() = default;

  virtual Address address() const = 0;  // with the port in use

  // Waits for an invitation, and returns it with the address of its coordinator in place of an unspecified one. The
  // summer then serves that job until end(). None: stop() was called.
  virtual std::optional<Invitation> next() = 0;
  // Calls `action` on one of gRPC's threads, or in this call, if the inviter of the job that the summer serves is gone.
  // `action` must not call the port. end() waits for a call in progress.
  virtual void on_inviter_gone(std::function<void()> action) = 0;
  // Tells the inviter that the summer has joined the job.
  virtual void joined() = 0;
  // Ends the service of the job. OK: the job has ended. Otherwise the inviter invites the summer again. The token of
  // the next job differs, so next() returns each invitation once.
  virtual void end(const absl::Status& how) = 0;

  // Makes next() return none, from now on.
  virtual void stop() = 0;
};

}  // namespace gleaner::invitation
