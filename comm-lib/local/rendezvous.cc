#include "comm-lib/local/rendezvous.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gleaner::local {
namespace {

Digest hmac(const Options& options, absl::string_view label, uint32_t rank, uint32_t size) {
  const std::string text = absl::StrCat("gleaner local ranks, ", label, ": version ", kVersion, " job ", options.job,
                                        " worker ", options.worker, " rank ", rank, " of ", size);
  Digest digest{};
  HMAC(EVP_sha256(), options.secret.data(), static_cast<int>(options.secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), nullptr);
  return digest;
}

bool equal(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t size = 0;

  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

absl::Status system_error(absl::string_view what) {
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  const std::string text = absl::StrCat("can't ", what, " the socket of the local ranks: ", std::strerror(errno),
                                        exhausted ? "; raise the limit of open files (ulimit -n) or free memory" : "");
  return exhausted ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

Descriptor make_socket() { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

std::string socket_name(const Options& options) {
  const Digest digest = hmac(options, "name", 0, 0);
  const absl::string_view start(reinterpret_cast<const char*>(digest.data()), 16);
  return absl::StrCat("gleaner-local-", absl::BytesToHexString(start));
}

absl::StatusOr<Descriptor> listen_at(const std::string& name) {
  const AbstractAddress address(name);
  Descriptor socket = make_socket();
  if (!socket.valid()) return system_error("make");
  if (bind(socket.get(), address.get(), address.size) != 0) {
    if (errno != EADDRINUSE) return system_error("bind");
    return absl::AlreadyExistsError(
        "another process is local rank 0 of this worker: give every process its own GLEANER_LOCAL_RANK");
  }
  if (listen(socket.get(), kMaxLocalRanks) != 0) return system_error("listen at");
  return socket;
}

absl::StatusOr<std::optional<Descriptor>> connect_to(const std::string& name) {
  const AbstractAddress address(name);
  Descriptor socket = make_socket();
  if (!socket.valid()) return system_error("make");
  if (connect(socket.get(), address.get(), address.size) != 0) {
    if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return std::nullopt;
    return system_error("connect");
  }
  return std::optional(std::move(socket));
}

absl::StatusOr<std::optional<Descriptor>> accept_from(const Descriptor& listener) {
  Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.valid()) return std::optional(std::move(socket));
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED) return std::nullopt;
  return system_error("accept at");
}

absl::StatusOr<pid_t> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return system_error("ask for the peer of");
  if (peer.uid != geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat("the process at the other end belongs to user ", peer.uid,
                                                    ", expected user ", geteuid(),
                                                    ": run all local ranks as one user"));
  }
  return peer.pid;
}

Descriptor watch_process(pid_t pid) {
  return pid > 0 ? Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) : Descriptor();
}

HelloPayload hello_of(const Options& options) {
  HelloPayload hello;
  hello.job = options.job;
  hello.worker = options.worker;
  hello.local_rank = options.local_rank;
  hello.local_size = options.local_size;
  hello.proof = hmac(options, "hello", options.local_rank, options.local_size);
  return hello;
}

absl::Status check_hello(const HelloPayload& hello, const Options& leader) {
  if (hello.job != leader.job || hello.worker != leader.worker ||
      !equal(hello.proof, hmac(leader, "hello", hello.local_rank, hello.local_size))) {
    return absl::PermissionDeniedError(absl::StrCat("local rank ", hello.local_rank, " of worker ", hello.worker,
                                                    " does not know the job's secret, which local rank 0 of worker ",
                                                    leader.worker, " has: give all ranks the same token"));
  }
  if (hello.local_size != leader.local_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "local rank ", hello.local_rank, " of worker ", leader.worker, " was started with local size ",
        hello.local_size, ", local rank 0 with ", leader.local_size, ": set the same GLEANER_LOCAL_SIZE for both"));
  }
  if (hello.local_rank == 0 || hello.local_rank >= leader.local_size) {
    return absl::InvalidArgumentError(absl::StrCat("local rank ", hello.local_rank,
                                                   " sent HELLO to local rank 0 of worker ", leader.worker,
                                                   ", which expects local ranks 1 to ", leader.local_size - 1));
  }
  return absl::OkStatus();
}

Digest welcome_of(const Options& options, uint32_t rank) { return hmac(options, "welcome", rank, options.local_size); }

absl::Status check_welcome(const Digest& welcome, const Options& options) {
  if (equal(welcome, welcome_of(options, options.local_rank))) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the process that listens as local rank 0 of worker ", options.worker,
                                                  " does not know the job's secret"));
}

}  // namespace gleaner::local
