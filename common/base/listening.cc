#include "common/base/listening.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace gleaner {
namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

constexpr char kGiveAnother[] = "give a host's name, or an address such as 127.0.0.1 or ::1";

// Returns an error if the host is written as an address, and is none. Such a host is not looked up: the name service
// may let the caller wait, and can't know it.
absl::Status check_written_address(const std::string& host) {
  const bool is_v6 = host.find(':') != std::string::npos;
  const bool is_v4 = host.find_first_not_of("0123456789.") == std::string::npos;
  in_addr v4{};
  // inet_aton() takes short forms such as 127.1, too. IPv6 addresses may name an interface behind a %.
  if (is_v4 && inet_aton(host.c_str(), &v4) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(quote(host), " is no IPv4 address, which has four numbers from 0 to 255; ", kGiveAnother));
  }
  in6_addr v6{};
  if (is_v6 && inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &v6) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(quote(host), " is no IPv6 address; ", kGiveAnother));
  }
  return absl::OkStatus();
}

absl::Status lookup_error(int error, const std::string& host) {
  const std::string what = absl::StrCat("can't find host ", quote(host), ": ");
  switch (error) {
    case EAI_NONAME:
    case EAI_NODATA:
      return absl::InvalidArgumentError(
          absl::StrCat(what, "this machine's name service does not know it; ", kGiveAnother));
    case EAI_AGAIN:
      return absl::UnavailableError(absl::StrCat(what, "this machine's name service does not answer; ", kGiveAnother));
    case EAI_SYSTEM:
      return absl::UnavailableError(absl::StrCat(what, std::strerror(errno)));
    case EAI_MEMORY:
      return absl::UnavailableError(absl::StrCat(what, gai_strerror(error)));
    default:
      return absl::InvalidArgumentError(absl::StrCat(what, gai_strerror(error), "; ", kGiveAnother));
  }
}

absl::Status listen_error(int error, const Address& address) {
  const std::string what = absl::StrCat("can't listen on ", address.to_string());
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(what, ": the port is in use; choose another, or 0 for any free one"));
    case EAFNOSUPPORT:  // the kernel has no IPv6
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": this machine has no such address; give one of its addresses, or 0.0.0.0 for all of them"));
    default:
      return exhausted(what, error);
  }
}

absl::StatusOr<Descriptor> bind_and_listen(const SocketAddress& target, const Address& address) {
  Descriptor socket(::socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return listen_error(errno, address);
  const int one = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return listen_error(errno, address);
  }
  return socket;
}

}  // namespace

absl::StatusOr<std::vector<SocketAddress>> resolve(const Address& address) {
  GLN_RETURN_IF_ERROR(check_written_address(address.host));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &first);
  if (error != 0) return lookup_error(error, address.host);
  const AddressInfo found(first, &freeaddrinfo);
  std::vector<SocketAddress> targets;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    SocketAddress& target = targets.emplace_back(SocketAddress{{}, entry->ai_addrlen});
    std::memcpy(&target.address, entry->ai_addr, entry->ai_addrlen);
  }
  return targets;
}

absl::StatusOr<Descriptor> listen_on(const Address& address) {
  GLN_ASSIGN_OR_RETURN(const std::vector<SocketAddress> targets, resolve(address));
  absl::StatusOr<Descriptor> socket = absl::InvalidArgumentError(absl::StrCat("'", address.host, "' has no address"));
  for (const SocketAddress& target : targets) {
    socket = bind_and_listen(target, address);
    if (socket.ok() || absl::IsAlreadyExists(socket.status())) break;
  }
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

absl::StatusOr<Address> local_address(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return absl::ErrnoToStatus(errno, "getsockname");
  }
  return to_address(storage, size);
}

}  // namespace gleaner
