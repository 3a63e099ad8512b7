#include "common/proto/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/str_cat.h"

namespace gleaner::proto {

std::string make_proof(absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                       absl::string_view member_nonce, absl::string_view statement) {
  // Everything before the statement has a fixed length per label, so two different statements give different texts.
  const std::string text = absl::StrCat(prover == Prover::kMember ? "gleaner member" : "gleaner coordinator",
                                        coordinator_nonce, member_nonce, statement);
  std::string proof(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), reinterpret_cast<unsigned char*>(proof.data()), &size);
  proof.resize(size);
  return proof;
}

bool check_proof(absl::string_view proof, absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                 absl::string_view member_nonce, absl::string_view statement) {
  if (coordinator_nonce.size() != kNonceBytes || member_nonce.size() != kNonceBytes) return false;
  const std::string expected = make_proof(token, prover, coordinator_nonce, member_nonce, statement);
  return proof.size() == expected.size() && CRYPTO_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

}  // namespace gleaner::proto
