// The proofs by which two ends of a stream show each other that they know a token, which is never sent: a member and
// its coordinator the job's token, and an inviter and a waiting summer the summer's token (invitation.proto).
//
// Each proof is an HMAC-SHA256, keyed with the token, over a label for its direction, both nonces and a statement of
// the prover. So neither a replay nor a reflection passes. Pure; the callers draw nonces from Env's Random.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::proto {

inline constexpr size_t kNonceBytes = 32;

enum class Prover { kMember, kCoordinator, kInviter, kWaitingSummer };

// Returns a proof. `statement`: a member's serialized Identity, the coordinator's job nonce, or a serialized
// Invitation. A waiting summer draws the `coordinator_nonce`, and its inviter the `member_nonce`.
std::string make_proof(absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                       absl::string_view member_nonce, absl::string_view statement);

// Returns whether `proof` is right. Compares in constant time. False if a nonce has another length than kNonceBytes.
bool check_proof(absl::string_view proof, absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                 absl::string_view member_nonce, absl::string_view statement);

// Returns the token of a job that has invited summers: `nonce`, then HMAC-SHA256(shared, "gleaner job token" + nonce),
// in hexadecimal. `shared` is the token of the summers, so each of them finds the job's token by the nonce alone.
std::string make_job_token(absl::string_view shared, absl::string_view nonce);

// Returns the nonce of a token that make_job_token(shared, ...) made. None: the token was made in another way.
std::optional<std::string> nonce_of_job_token(absl::string_view shared, absl::string_view token);

}  // namespace gleaner::proto
