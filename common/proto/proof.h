// How a member and its coordinator show each other that they hold the job's token, which never travels.
//
// Each proof is an HMAC-SHA256, keyed with the token, over a label for its direction, both nonces and what the prover
// says of itself: neither a replay nor a reflection passes. Pure; nonces come from Env's Random.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::proto {

inline constexpr size_t kNonceBytes = 32;

enum class Prover { kMember, kCoordinator };

// `statement`: a member's serialized Identity; the coordinator's job nonce.
std::string make_proof(absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                       absl::string_view member_nonce, absl::string_view statement);

// In constant time. False for nonces of another length than kNonceBytes.
bool check_proof(absl::string_view proof, absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                 absl::string_view member_nonce, absl::string_view statement);

}  // namespace gleaner::proto
