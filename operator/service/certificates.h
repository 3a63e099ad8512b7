// Identity is the coordinator's identity: Gleaner's own CA and a server certificate signed by it. One Secret stores
// both. renew() renews them in time.
//
// Pure except for OpenSSL's random numbers: the caller stores the identity and passes the time. Keys are ECDSA P-256.
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
  std::string earlier_ca;  // PEM of the previous CA while certificates that it signed may be in use; else empty
  Certificate server;
  std::string data_key;  // 32 bytes, from which the secrets of jobs' data connections are derived

  std::string ca_bundle() const { return ca.certificate + earlier_ca; }
};

inline constexpr absl::Duration kCaLife = absl::Hours(24 * 365 * 5);
inline constexpr absl::Duration kServerLife = absl::Hours(24 * 90);

// Renews each part of `identity` that is missing or unreadable, has less than a third of its life left, was signed by
// another CA, or is not valid for `host_names`. Returns whether any part changed, or Internal if OpenSSL fails.
absl::StatusOr<bool> renew(Identity& identity, const std::vector<std::string>& host_names, absl::Time now);

// Returns when a PEM certificate expires. InvalidArgument: the text is not a certificate.
absl::StatusOr<absl::Time> expiry(const std::string& certificate);

}  // namespace gleaner::operation
