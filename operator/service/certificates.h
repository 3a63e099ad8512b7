// The coordinator's identity: a CA of our own and the server certificate that it signs, kept in one Secret, renewed in
// time.
//
// Pure but for the random numbers of OpenSSL: the caller keeps what is made, and says what time it is. Keys are ECDSA
// P-256.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gleaner::operation {

struct Certificate {
  std::string certificate;  // PEM
  std::string key;          // PEM, PKCS #8
};

struct Identity {
  Certificate ca;
  std::string earlier_ca;  // PEM of the CA before, while certificates by it may still be trusted; may be empty
  Certificate server;
  std::string data_key;  // 32 bytes: the secrets of jobs' data connections come from it

  std::string ca_bundle() const { return ca.certificate + earlier_ca; }
};

inline constexpr absl::Duration kCaLife = absl::Hours(24 * 365 * 5);
inline constexpr absl::Duration kServerLife = absl::Hours(24 * 90);

// What of `identity` has less than a third of its life left, is missing, unreadable, by another CA or not for
// `host_names` is made anew; the rest stays. True: something changed. Internal: OpenSSL can't.
absl::StatusOr<bool> renew(Identity& identity, const std::vector<std::string>& host_names, absl::Time now);

// When a PEM certificate ends. InvalidArgument: it is none.
absl::StatusOr<absl::Time> expiry(const std::string& certificate);

}  // namespace gleaner::operation
