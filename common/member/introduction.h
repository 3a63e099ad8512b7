// How the two ends of a stream show each other who they are, from the side that joins. Pure but for the token file.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/member/client.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::member {

class Introduction {
 public:
  // `options` outlives it. `nonce`: proto::kNonceBytes random bytes.
  explicit Introduction(const JoinOptions& options) : options_(options) {}
  void set_nonce(std::string nonce) { nonce_ = std::move(nonce); }

  // Fills in all but Resume. FailedPrecondition: the coordinator is of another version, or a bearer token would be
  // shown without TLS; NotFound and the like: the token can't be read.
  absl::Status answer(const v1::Challenge& challenge, v1::Join* join);
  // PermissionDenied: whoever welcomes us is not this job's coordinator.
  absl::Status check(const v1::Welcome& welcome, Welcome* told) const;

 private:
  const JoinOptions& options_;
  std::string nonce_;
  std::string challenge_;      // the coordinator's nonce
  bool shows_bearer_ = false;  // in place of a proof
};

}  // namespace gleaner::member
