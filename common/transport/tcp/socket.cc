#include "common/transport/tcp/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::tcp {
namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status lookup_error(int error, const std::string& host) {
  const std::string message =
      absl::StrCat("can't find host '", host, "': ", error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error));
  if (error == EAI_AGAIN || error == EAI_SYSTEM || error == EAI_MEMORY) return absl::UnavailableError(message);
  return absl::InvalidArgumentError(message);
}

absl::StatusOr<Descriptor> open_socket(const Target& target) {
  Descriptor socket(::socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return absl::UnavailableError(absl::StrCat("can't open a socket: ", std::strerror(errno)));
  return socket;
}

// Replaces BBR, if it is the host's default, by another algorithm. BBR paces a connection at the rate that it measured
// before. All connections of a member share one window of bytes in flight, so each is idle most of the time. BBR would
// then spread the next frame over as much time as the last frames took, in small packets.
void avoid_bbr(const Descriptor& socket) {
  std::array<char, 16> name{};
  socklen_t size = name.size() - 1;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return;
  if (absl::string_view(name.data()) != "bbr") return;
  for (const absl::string_view other : {"cubic", "reno"}) {  // cubic may be restricted to root; reno never is
    if (setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, other.data(), static_cast<socklen_t>(other.size())) ==
        0) {
      return;
    }
  }
}

absl::Status listen_error(int error, const Address& address) {
  const std::string what = absl::StrCat("can't listen on ", address.to_string());
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(what, ": the port is in use; choose another, or 0 for any free one"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": this machine has no such address; give one of its addresses, or 0.0.0.0 for all of them"));
    default:
      return absl::ErrnoToStatus(error, what);
  }
}

absl::StatusOr<Descriptor> bind_and_listen(const Target& target, const Address& address) {
  GLN_ASSIGN_OR_RETURN(Descriptor socket, open_socket(target));
  const int one = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return listen_error(errno, address);
  }
  return socket;
}

}  // namespace

absl::StatusOr<std::vector<Target>> resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &first);
  if (error != 0) return lookup_error(error, address.host);
  const AddressInfo found(first, &freeaddrinfo);
  std::vector<Target> targets;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    Target& target = targets.emplace_back(Target{{}, entry->ai_addrlen});
    std::memcpy(&target.address, entry->ai_addr, entry->ai_addrlen);
  }
  return targets;
}

absl::StatusOr<Descriptor> listen_on(const Address& address) {
  GLN_ASSIGN_OR_RETURN(const std::vector<Target> targets, resolve(address));
  absl::StatusOr<Descriptor> socket = absl::InvalidArgumentError(absl::StrCat("'", address.host, "' has no address"));
  for (const Target& target : targets) {
    socket = bind_and_listen(target, address);
    if (socket.ok() || absl::IsAlreadyExists(socket.status())) break;
  }
  return socket;
}

absl::StatusOr<Descriptor> start_connect(const Target& target, const std::string& address) {
  GLN_ASSIGN_OR_RETURN(Descriptor socket, open_socket(target));
  tune(socket);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) != 0 &&
      errno != EINPROGRESS) {
    return absl::UnavailableError(absl::StrCat("can't connect to ", address, ": ", std::strerror(errno)));
  }
  return socket;
}

absl::Status connect_outcome(const Descriptor& socket, const std::string& address) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("can't connect to ", address, ": ", std::strerror(error)));
}

absl::StatusOr<Address> to_address(const sockaddr_storage& storage, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host, sizeof(host), port,
                                sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return absl::InternalError(gai_strerror(error));
  return Address{host, static_cast<uint16_t>(std::stoi(port))};
}

absl::StatusOr<Address> local_address(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return absl::ErrnoToStatus(errno, "getsockname");
  }
  return to_address(storage, size);
}

std::string peer_address(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "a peer that is gone";
  const auto address = to_address(storage, size);
  return address.ok() ? address->to_string() : "a peer of unknown address";
}

void tune(const Descriptor& socket) {
  const int one = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  avoid_bbr(socket);
}

void pace(const Descriptor& socket, double bits_per_second) {
  const auto bytes_per_second = static_cast<uint64_t>(std::max(1.0, bits_per_second / 8));
  setsockopt(socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, sizeof(bytes_per_second));
}

}  // namespace gleaner::transport::tcp
