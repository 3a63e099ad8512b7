// Measures the bandwidth between the agents of two nodes, for NICs that tell no speed: a TCP connection, a fifth of a
// second each way.
//
// Both sides know a secret and prove it (HMAC-SHA256 over both sides' nonces) before a byte of load is sent; the secret
// itself is never sent, and the load is without content. One connection is at most kMostTime long; a server serves one
// at a time and rests in between. One TCP stream for so short a time finds a lower bound of a fast link's speed. The
// format is in docs/agent.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/env.h"

namespace gleaner::probe {

inline constexpr absl::Duration kLoadTime = absl::Milliseconds(200);  // each way
inline constexpr absl::Duration kMostTime = absl::Seconds(1);         // of a connection, whatever happens

class MeasureServer {
 public:
  // Serves on a thread of its own, "gln-measure", until destroyed. `address.host` is an IP address; port 0: any free
  // one. `rest`: after each measurement nobody is served for so long. Unavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<MeasureServer>> start(const Env& env, const Address& address,
                                                              std::string secret,
                                                              absl::Duration rest = absl::Seconds(1));
  virtual ~MeasureServer() = default;
  virtual Address address() const = 0;  // with the port in use
};

// The slower of both ways, in bits per second. Blocks for kMostTime at most. PermissionDenied: the peer doesn't know
// the secret; FailedPrecondition: the peer is this machine itself; Unavailable, DeadlineExceeded: try another.
absl::StatusOr<double> measure(const Env& env, const Address& peer, const std::string& secret);

// The IP addresses that a name stands for, of a headless Service for example, with the port of `peers`.
absl::StatusOr<std::vector<Address>> resolve(const Address& peers);

}  // namespace gleaner::probe
