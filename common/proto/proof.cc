#include "common/proto/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gleaner::proto {

namespace {

std::string hmac_sha256(absl::string_view key, absl::string_view text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size);
  digest.resize(size);
  return digest;
}

// No label begins with another one.
absl::string_view label_of(Prover prover) {
  switch (prover) {
    case Prover::kMember:
      return "gleaner member";
    case Prover::kCoordinator:
      return "gleaner coordinator";
    case Prover::kInviter:
      return "gleaner inviter";
    case Prover::kWaitingSummer:
      return "gleaner waiting summer";
  }
  return "";
}

}  // namespace

std::string make_proof(absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                       absl::string_view member_nonce, absl::string_view statement) {
  // Everything before the statement has a fixed length per label, so two different statements give different texts.
  return hmac_sha256(token, absl::StrCat(label_of(prover), coordinator_nonce, member_nonce, statement));
}

bool check_proof(absl::string_view proof, absl::string_view token, Prover prover, absl::string_view coordinator_nonce,
                 absl::string_view member_nonce, absl::string_view statement) {
  if (coordinator_nonce.size() != kNonceBytes || member_nonce.size() != kNonceBytes) return false;
  const std::string expected = make_proof(token, prover, coordinator_nonce, member_nonce, statement);
  return proof.size() == expected.size() && CRYPTO_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

std::string make_job_token(absl::string_view shared, absl::string_view nonce) {
  return absl::BytesToHexString(absl::StrCat(nonce, hmac_sha256(shared, absl::StrCat("gleaner job token", nonce))));
}

std::optional<std::string> nonce_of_job_token(absl::string_view shared, absl::string_view token) {
  constexpr absl::string_view kDigits = "0123456789abcdef";
  const absl::string_view digits = token.substr(0, 2 * kNonceBytes);
  if (digits.size() != 2 * kNonceBytes || digits.find_first_not_of(kDigits) != absl::string_view::npos) {
    return std::nullopt;
  }
  std::string nonce = absl::HexStringToBytes(digits);
  const std::string expected = make_job_token(shared, nonce);
  if (token.size() != expected.size() || CRYPTO_memcmp(token.data(), expected.data(), expected.size()) != 0) {
    return std::nullopt;
  }
  return nonce;
}

}  // namespace gleaner::proto
