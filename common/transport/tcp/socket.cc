#include "common/transport/tcp/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::tcp {
namespace {

using Resolved = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Resolved> resolve(const Address& address, bool passive) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("can't find host '", address.host, "': ", gai_strerror(error)));
  }
  return Resolved(found, &freeaddrinfo);
}

absl::StatusOr<Socket> open_socket(const addrinfo& target) {
  Socket socket(::socket(target.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return absl::ErrnoToStatus(errno, "can't open a socket");
  return socket;
}

absl::StatusOr<Address> to_address(const sockaddr_storage& storage, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host, sizeof(host), port,
                                sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return absl::InternalError(gai_strerror(error));
  return Address{host, static_cast<uint16_t>(std::stoi(port))};
}

}  // namespace

Socket::~Socket() { close(); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

absl::StatusOr<Socket> listen_on(const Address& address) {
  GLN_ASSIGN_OR_RETURN(const Resolved target, resolve(address, true));
  GLN_ASSIGN_OR_RETURN(Socket socket, open_socket(*target));
  const int one = 1;
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(socket.descriptor(), target->ai_addr, target->ai_addrlen) != 0 ||
      listen(socket.descriptor(), SOMAXCONN) != 0) {
    const int error = errno;
    const std::string what = absl::StrCat("can't listen on ", address.to_string());
    if (error == EADDRINUSE) {
      return absl::AlreadyExistsError(
          absl::StrCat(what, ": the port is in use; choose another, or 0 for any free one"));
    }
    return absl::ErrnoToStatus(error, what);
  }
  return socket;
}

absl::StatusOr<Socket> start_connect(const Address& address) {
  GLN_ASSIGN_OR_RETURN(const Resolved target, resolve(address, false));
  GLN_ASSIGN_OR_RETURN(Socket socket, open_socket(*target));
  set_no_delay(socket);
  if (connect(socket.descriptor(), target->ai_addr, target->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return absl::UnavailableError(absl::StrCat("can't connect to ", address.to_string(), ": ", std::strerror(errno)));
  }
  return socket;
}

absl::StatusOr<Address> local_address(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return absl::ErrnoToStatus(errno, "getsockname");
  }
  return to_address(storage, size);
}

std::string peer_address(const Socket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "?";
  const auto address = to_address(storage, size);
  return address.ok() ? address->to_string() : "?";
}

absl::Status connect_outcome(const Socket& socket, const std::string& address) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("can't connect to ", address, ": ", std::strerror(error)));
}

void set_no_delay(const Socket& socket) {
  const int one = 1;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

}  // namespace gleaner::transport::tcp
