// The handshake of an invitation, in which both ends prove that they know the summer's token (invitation.proto). Pure:
// the caller sends and receives the messages, and draws the nonces.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/invitation/invitation.h"
#include "common/proto/invitation.pb.h"

namespace gleaner::invitation {

// The inviter's side, for one stream.
class InviterHandshake {
 public:
  // `token`: the summer's. `nonce`: proto::kNonceBytes random bytes, new for each stream.
  InviterHandshake(const Invitation& invitation, std::string token, std::string nonce)
      : invitation_(serialize(invitation)), token_(std::move(token)), nonce_(std::move(nonce)) {}

  // FailedPrecondition: the summer has another version. InvalidArgument: the challenge is malformed.
  absl::StatusOr<v1::Invite> answer(const v1::SummerChallenge& challenge);
  // Checks the summer's proof against the last answer. PermissionDenied: the summer does not know the token.
  absl::Status check(const v1::Accepted& accepted) const;

 private:
  const std::string invitation_;
  const std::string token_;
  const std::string nonce_;
  std::string challenge_;  // the summer's nonce
};

// The waiting summer's side, for one stream.
class SummerHandshake {
 public:
  SummerHandshake(std::string token, std::string nonce) : token_(std::move(token)), nonce_(std::move(nonce)) {}

  v1::SummerChallenge challenge() const;
  // Checks the inviter's proof, and returns its invitation. PermissionDenied: the inviter does not know the token.
  // FailedPrecondition: it has another version. InvalidArgument: see parse_invitation().
  absl::StatusOr<Invitation> check(const v1::Invite& invite) const;
  // Accepts an invitation that check() has returned.
  v1::Accepted accept(const v1::Invite& invite) const;

 private:
  const std::string token_;
  const std::string nonce_;
};

}  // namespace gleaner::invitation
