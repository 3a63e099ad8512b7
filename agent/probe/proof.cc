#include "agent/probe/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/str_cat.h"

namespace gleaner::probe {

Proof prove(absl::string_view side, const Nonce& server, const Nonce& client, const std::string& secret) {
  const auto text = [](const Nonce& nonce) {
    return absl::string_view(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  };
  return sign(absl::StrCat("gleaner-measure-2 ", side, " ", text(server), text(client)), secret);
}

Proof sign(absl::string_view message, const std::string& secret) {
  Proof proof{};
  unsigned bytes = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), proof.data(), &bytes);
  return proof;
}

bool same_proof(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace gleaner::probe
