// How the two sides of a measurement prove to each other that they know the secret.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace gleaner::probe {

using Nonce = std::array<uint8_t, 32>;
using Proof = std::array<uint8_t, 32>;

// What the server says first, and the client's answer. The server then sends its Proof. Bytes on the wire as they are
// here.
struct Hello {
  std::array<char, 4> magic = {'G', 'L', 'N', 'M'};
  uint8_t version = 1;
  std::array<uint8_t, 3> reserved = {};
  Nonce nonce = {};
};
static_assert(sizeof(Hello) == 40);
struct Answer {
  Nonce nonce = {};
  Proof proof = {};
};
static_assert(sizeof(Answer) == 64);

// `side`: "client" or "server", so that one's proof is none of the other's.
Proof prove(absl::string_view side, const Nonce& server, const Nonce& client, const std::string& secret);

// In a time that does not depend on where they differ.
bool same_proof(const Proof& a, const Proof& b);

}  // namespace gleaner::probe
