// The handshake, in which the two ends of a connection prove to each other that they know their job's secret, without
// sending it.
//
//   client (a worker's session)                      server (a summer)
//   HELLO {protocol version, member, nonce_c}   -->
//                                               <--  CHALLENGE {nonce_s}
//   PROOF {HMAC(secret, "client" …)}            -->  checks it in constant time
//                                               <--  WELCOME {HMAC(secret, "server" …)}   client checks it
// Each HMAC-SHA256 covers a label of the role, the job's number, the member and both nonces, so neither a replay nor a
// reflection passes. A side whose check fails answers REJECT with a message and closes the connection. Before WELCOME a
// peer gets no buffer for a contribution or a result.
//
// Pure: the caller sends and receives the frames. Header::job and Header::sender carry job and member.
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

// Returns the message of a kReject, with control characters replaced, so that it is safe to print.
std::string reject_message(ConstBytes payload);

// Returns HMAC-SHA256(token, "gleaner job secret" + job + nonce). Coordinator and members know the token and derive the
// secret from it, so the secret is never sent.
Secret derive_secret(absl::string_view token, absl::string_view job, ConstBytes coordinator_nonce);

// The client's side of the handshake.
class ClientHandshake {
 public:
  ClientHandshake(uint64_t job, uint32_t member, const Secret& secret, const Nonce& nonce);
  HandshakeFrame hello() const;
  // Answers a frame from the server: returns the frame to send, or none after a valid WELCOME (then done()).
  // PermissionDenied: the two sides know different secrets, or the server sent REJECT; its message is then part of the
  // error. InvalidArgument: the handshake does not expect this frame now.
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

// Finds, by job number, the secret with which a server checks a peer. find() returns null for an unknown job.
class JobSecrets {
 public:
  virtual ~JobSecrets() = default;
  virtual const Secret* find(uint64_t job) const = 0;
};

// The server's side of the handshake.
class ServerHandshake {
 public:
  ServerHandshake(const JobSecrets& jobs, const Nonce& nonce);
  // Answers a frame from the client, as ClientHandshake::on_frame(). On an error the caller sends reject(error) and
  // closes the connection.
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
