// The messages by which a member joins: Challenge from the coordinator, Join from the member, then Admission from the
// coordinator. Both ends prove that they know the job's token, or the member shows a bearer token (coordinator.proto).
// Plain values; all strings are bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/control/coordinator_messages.h"
#include "common/control/identity.h"

namespace gleaner::control {

struct Challenge {
  uint32_t protocol = 0;
  std::string nonce;
  bool wants_bearer = false;  // the member is to show a bearer token instead of a proof
  friend bool operator==(const Challenge&, const Challenge&) = default;
};

struct Join {
  uint32_t protocol = 0;
  std::string identity;  // a serialized Identity: the proof covers these bytes
  std::string nonce;
  std::string proof;
  std::string bearer;  // in place of the proof
  std::optional<Resume> resume;
  friend bool operator==(const Join&, const Join&) = default;
};

struct Admission {
  Welcome welcome;        // all but the secret
  std::string job_nonce;  // with the token it determines the secret of data connections
  std::string proof;      // that the coordinator knows the token; empty for a member that has shown a bearer token
  std::string secret;     // for such a member: the secret of data connections; empty for an observer
  friend bool operator==(const Admission&, const Admission&) = default;
};

}  // namespace gleaner::control
