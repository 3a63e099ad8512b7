// Introduction is the member's side of the handshake that authenticates both ends of a stream. Pure, except that it
// reads the token file.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/control/handshake.h"
#include "common/member/join_options.h"

namespace gleaner::member {

class Introduction {
 public:
  // `options` and `random` must outlive this object.
  Introduction(const JoinOptions& options, Random* random) : options_(options), random_(random) {}

  // Keeps the challenge for the next answer().
  void on_challenge(control::Challenge challenge) { unanswered_ = std::move(challenge); }
  // Answers the last challenge by a Join without Resume. Draws a nonce for each connection, so that a proof
  // that was overheard on one connection is of no use on another. Unavailable: the system has no random bytes.
  // FailedPrecondition: the coordinator has another version, or a bearer token would be sent without TLS. Other errors:
  // the token can't be read.
  absl::StatusOr<control::Join> answer();
  // Checks an admission against the last answer, and returns its Welcome with the secret. PermissionDenied: the sender
  // is not this job's coordinator. InvalidArgument: the secret has another length.
  absl::StatusOr<control::Welcome> check(const control::Admission& admission) const;

 private:
  const JoinOptions& options_;
  Random* const random_;
  control::Challenge unanswered_;
  // Nonces of the last answer. A later challenge does not change them, so check() uses them.
  std::string nonce_;
  std::string challenge_;      // the coordinator's nonce
  bool shows_bearer_ = false;  // the coordinator asked for a bearer token instead of a proof
};

}  // namespace gleaner::member
