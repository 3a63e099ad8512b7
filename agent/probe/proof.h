// Proofs that somebody knows the agents' secret, and the handshake by which both sides of a measurement of bandwidth
// prove it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::probe {

using Nonce = std::array<uint8_t, 32>;
using Proof = std::array<uint8_t, 32>;

// The server sends Hello first, and the client replies with Answer. The server then sends its Proof. The bytes on the
// wire are those of the structs.
struct Hello {
  std::array<char, 4> magic = {'G', 'L', 'N', 'M'};
  uint8_t version = 2;
  uint8_t is_busy = 0;  // 1: the server asks clients that can wait to come again later
  std::array<uint8_t, 2> reserved = {};
  Nonce nonce = {};
};
static_assert(sizeof(Hello) == 40);
struct Answer {
  Nonce nonce = {};
  Proof proof = {};
};
static_assert(sizeof(Answer) == 64);

// Returns the proof of `side`, "client" or "server". Neither side's proof is valid for the other.
Proof prove(absl::string_view side, const Nonce& server, const Nonce& client, const std::string& secret);

// Returns the HMAC-SHA256 of the message by the secret.
Proof sign(absl::string_view message, const std::string& secret);

// Returns whether the proofs, or equally long parts of proofs, are equal. Compares in constant time.
bool same_proof(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace gleaner::probe
