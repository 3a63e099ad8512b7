// How the two ends of a stream prove who they are, from the side of the member that joins. Pure except for reading the
// token file.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/env.h"
#include "common/member/client.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::member {

class Introduction {
 public:
  // `options` and `random` outlive it.
  Introduction(const JoinOptions& options, Random* random) : options_(options), random_(random) {}

  // Fills in all but Resume, with a nonce of its own for each connection: a proof that was overheard on one shows
  // nothing on another. Unavailable: the system has no random bytes; FailedPrecondition: the coordinator is of another
  // version, or a bearer token would be shown without TLS; NotFound and the like: the token can't be read.
  absl::Status answer(const v1::Challenge& challenge, v1::Join* join);
  // PermissionDenied: whoever welcomes us is not this job's coordinator.
  absl::Status check(const v1::Welcome& welcome, Welcome* told) const;

 private:
  const JoinOptions& options_;
  Random* const random_;
  std::string nonce_;          // of the last answer
  std::string challenge_;      // the coordinator's nonce
  bool shows_bearer_ = false;  // in place of a proof
};

}  // namespace gleaner::member
