// The proofs by which a member and its coordinator show each other that they know the job's token, which is never sent.
//
// Each proof is an HMAC-SHA256, keyed with the token, over a label for its direction, both nonces and a statement of
// the prover. So neither a replay nor a reflection passes. Pure; the callers draw nonces from Env's Random.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::proto {

inline constexpr size_t kNonceBytes = 32;

enum class Prover { kMember, kCoordinator };

// Returns a proof. `statement`: a member's serialized Identity, or the coordinator's job nonce.
std::string make_proof(absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                       absl::string_view member_nonce, absl::string_view statement);

// Returns whether `proof` is right. Compares in constant time. False if a nonce has another length than kNonceBytes.
bool check_proof(absl::string_view proof, absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                 absl::string_view member_nonce, absl::string_view statement);

}  // namespace gleaner::proto
