#include "common/wire/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::wire {
namespace {

using Digest = std::array<uint8_t, 32>;

Digest hmac_sha256(ConstBytes key, absl::string_view message) {
  Digest digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(message.data()),
       message.size(), digest.data(), &size);
  return digest;
}

template <typename T>
void append_bytes(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Returns the proof of a role. The proofs of both roles cover the same values under different labels, so that neither
// proof can be reflected.
Digest proof(const Secret& secret, absl::string_view role, uint64_t job, uint32_t member, const Nonce& client,
             const Nonce& server) {
  std::string message = absl::StrCat("gleaner handshake 1 ", role, " ");
  append_bytes(message, job);
  append_bytes(message, member);
  append_bytes(message, client);
  append_bytes(message, server);
  return hmac_sha256(std::as_bytes(std::span(secret)), message);
}

bool equal(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

HandshakeFrame make_frame(FrameType type, uint64_t job, uint32_t member, ConstBytes payload) {
  HandshakeFrame frame;
  frame.payload.assign(payload.begin(), payload.end());
  frame.header.type = type;
  frame.header.job = job;
  frame.header.sender = member;
  seal(frame.header, frame.payload);
  return frame;
}

absl::Status unexpected(const Header& header, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", expected, " in the handshake, got ", name_of(header.type)));
}

template <size_t N>
absl::Status read(const Header& header, ConstBytes payload, std::array<uint8_t, N>* target) {
  if (payload.size() != N) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_of(header.type), " frame with ", payload.size(), " bytes, expected ", N));
  }
  std::memcpy(target->data(), payload.data(), N);
  return absl::OkStatus();
}

}  // namespace

std::string reject_message(ConstBytes payload) {
  std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

Secret derive_secret(absl::string_view token, absl::string_view job, ConstBytes coordinator_nonce) {
  std::string message = absl::StrCat("gleaner job secret", job);
  message.append(reinterpret_cast<const char*>(coordinator_nonce.data()), coordinator_nonce.size());
  return hmac_sha256({reinterpret_cast<const std::byte*>(token.data()), token.size()}, message);
}

ClientHandshake::ClientHandshake(uint64_t job, uint32_t member, const Secret& secret, const Nonce& nonce)
    : job_(job), member_(member), secret_(secret), nonce_(nonce) {}

HandshakeFrame ClientHandshake::hello() const {
  return make_frame(FrameType::kHello, job_, member_, std::as_bytes(std::span(nonce_)));
}

absl::StatusOr<std::vector<HandshakeFrame>> ClientHandshake::on_frame(const Header& header, ConstBytes payload) {
  if (header.type == FrameType::kReject) {
    return absl::PermissionDeniedError(absl::StrCat("the summer refused the connection: ", reject_message(payload)));
  }
  if (header.type == FrameType::kChallenge && !challenged_) {
    GLN_RETURN_IF_ERROR(read(header, payload, &server_nonce_));
    challenged_ = true;
    const Digest mine = proof(secret_, "client", job_, member_, nonce_, server_nonce_);
    return std::vector{make_frame(FrameType::kProof, job_, member_, std::as_bytes(std::span(mine)))};
  }
  if (header.type == FrameType::kWelcome && challenged_ && !done_) {
    Digest theirs{};
    GLN_RETURN_IF_ERROR(read(header, payload, &theirs));
    const Digest expected = proof(secret_, "server", job_, member_, nonce_, server_nonce_);
    if (!equal(std::as_bytes(std::span(theirs)), std::as_bytes(std::span(expected)))) {
      return absl::PermissionDeniedError(
          "the summer does not know the job's secret: it belongs to another job, or its secret is wrong");
    }
    done_ = true;
    return std::vector<HandshakeFrame>{};
  }
  return unexpected(header, challenged_ ? "WELCOME" : "CHALLENGE");
}

ServerHandshake::ServerHandshake(const JobSecrets& jobs, const Nonce& nonce) : jobs_(jobs), nonce_(nonce) {}

absl::StatusOr<std::vector<HandshakeFrame>> ServerHandshake::on_frame(const Header& header, ConstBytes payload) {
  if (header.type == FrameType::kHello && !greeted_) {
    GLN_RETURN_IF_ERROR(read(header, payload, &client_nonce_));
    greeted_ = true;
    job_ = header.job;
    member_ = header.sender;
    return std::vector{make_frame(FrameType::kChallenge, job_, 0, std::as_bytes(std::span(nonce_)))};
  }
  if (header.type != FrameType::kProof || !greeted_ || done_) return unexpected(header, greeted_ ? "PROOF" : "HELLO");
  Digest theirs{};
  GLN_RETURN_IF_ERROR(read(header, payload, &theirs));
  // An unknown job gets the same answer as a wrong proof, so that a peer can't find out by guessing which jobs exist.
  const Secret* const secret = jobs_.find(job_);
  const Digest expected = proof(secret == nullptr ? Secret{} : *secret, "client", job_, member_, client_nonce_, nonce_);
  const bool right = equal(std::as_bytes(std::span(theirs)), std::as_bytes(std::span(expected)));
  if (secret == nullptr || !right || header.job != job_ || header.sender != member_) {
    return absl::PermissionDeniedError("wrong secret for this job, or this summer does not know the job");
  }
  done_ = true;
  const Digest mine = proof(*secret, "server", job_, member_, client_nonce_, nonce_);
  return std::vector{make_frame(FrameType::kWelcome, job_, 0, std::as_bytes(std::span(mine)))};
}

HandshakeFrame ServerHandshake::reject(const absl::Status& status) {
  const absl::string_view message = absl::string_view(status.message()).substr(0, kMaxHandshakePayload);
  return make_frame(FrameType::kReject, 0, 0, {reinterpret_cast<const std::byte*>(message.data()), message.size()});
}

}  // namespace gleaner::wire
