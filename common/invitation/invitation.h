// Invitation is the statement by which the coordinator of a job, the *inviter*, asks a summer that waits for jobs to
// serve its job. Plain value; invitation.proto describes the messages.
//
// A *waiting summer* (`gleaner-summer --await-jobs`) listens, and an inviter (`gleaner coordinator --invite`) dials it:
//   1. Both prove by HMAC that they know the summer's token (handshake.h). No token is sent. The invitation has a
//   nonce,
//      and the job's token is the HMAC of that nonce (proto::make_job_token), so both ends find it.
//   2. The summer accepts, dials the coordinator, and joins the job as any other CPU summer does. A summer serves one
//      job at a time, and refuses other invitations meanwhile.
//   3. The summer reports when it has joined. Until then the job counts on it and waits for it (inviter.h).
//   4. The stream stays open while the summer serves. If the stream ends before the job does, as with a summer that is
//      killed, the inviter dials again, and a summer that comes back joins the running job.
//   5. When the job has ended, the summer waits for the next invitation (port.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/address.h"

namespace gleaner::invitation {

struct Invitation {
  std::string job;          // its name
  Address coordinator;      // an unspecified host stands for the host from which the invitation comes
  std::string network;      // network_id() of the coordinator; empty: not known
  std::string summer;       // host at which the inviter has dialed the summer
  std::string token_nonce;  // proto::kNonceBytes bytes
  friend bool operator==(const Invitation&, const Invitation&) = default;
};

std::string serialize(const Invitation& invitation);
// InvalidArgument: the bytes are no invitation, or a field is out of range. Safe for any bytes.
absl::StatusOr<Invitation> parse_invitation(const std::string& bytes);

// Returns the address at which the summer dials the coordinator. `peer`: the inviter as gRPC names it, such as
// "ipv4:10.0.0.7:51234". `network`: network_id() of the summer. InvalidArgument: the address leads the summer to its
// own host and not to the coordinator's, or the peer has no IP address.
absl::StatusOr<Address> coordinator_of(const Invitation& invitation, absl::string_view peer, absl::string_view network);

}  // namespace gleaner::invitation
