// How two ends of a connection show each other that they belong to the same job, without sending the secret.
//
//   client (a worker's session)                      server (a summer)
//   HELLO {protocol version, member, nonce_c}   -->
//                                               <--  CHALLENGE {nonce_s}
//   PROOF {HMAC(secret, "client" …)}            -->  checks it in constant time
//                                               <--  WELCOME {HMAC(secret, "server" …)}   client checks it
// Each HMAC-SHA256 covers its role's label, job number, member, and both nonces, so that neither a replay nor a
// reflection passes. A failed check is answered by REJECT with a message and the connection is closed; no buffer for
// payload of sums is given to a peer before WELCOME.
// Pure: the caller moves the frames. Header::job and Header::sender carry job and member.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/wire/frame.h"

namespace gleaner::wire {

using Nonce = std::array<uint8_t, 32>;
using Secret = std::array<uint8_t, 32>;

// One frame of the handshake, ready to send: sealed header and payload.
struct HandshakeFrame {
  Header header;
  std::vector<std::byte> payload;
};

// The message of a kReject, safe to print.
std::string reject_message(ConstBytes payload);

// HMAC-SHA256(token, "gleaner job secret" + job + nonce): both coordinator and member know the token and derive the
// secret, which never travels.
Secret derive_secret(absl::string_view token, absl::string_view job, ConstBytes coordinator_nonce);

class ClientHandshake {
 public:
  ClientHandshake(uint64_t job, uint32_t member, const Secret& secret, const Nonce& nonce);
  HandshakeFrame hello() const;
  // The answer to a frame from the server: a frame to send, or none when WELCOME checked out (then done()).
  // PermissionDenied: a wrong secret on either side; InvalidArgument: a frame that does not belong here; the message of
  // a REJECT is passed on.
  absl::StatusOr<std::vector<HandshakeFrame>> on_frame(const Header& header, ConstBytes payload);
  bool done() const { return done_; }

 private:
  uint64_t job_;
  uint32_t member_;
  Secret secret_;
  Nonce nonce_;
  Nonce server_nonce_{};
  bool challenged_ = false;
  bool done_ = false;
};

// What a server needs to know of a job before it can check a peer: looked up by job number.
class JobSecrets {
 public:
  virtual ~JobSecrets() = default;
  virtual const Secret* find(uint64_t job) const = 0;
};

class ServerHandshake {
 public:
  ServerHandshake(const JobSecrets& jobs, const Nonce& nonce);
  // As above; on an error the caller sends reject(error) and closes.
  absl::StatusOr<std::vector<HandshakeFrame>> on_frame(const Header& header, ConstBytes payload);
  static HandshakeFrame reject(const absl::Status& status);
  bool done() const { return done_; }
  uint64_t job() const { return job_; }        // once done()
  uint32_t member() const { return member_; }  // once done()

 private:
  const JobSecrets& jobs_;
  Nonce nonce_;
  Nonce client_nonce_{};
  uint64_t job_ = 0;
  uint32_t member_ = 0;
  bool greeted_ = false;
  bool done_ = false;
};

}  // namespace gleaner::wire
