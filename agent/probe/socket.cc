#include "agent/probe/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>  // unlike <netinet/tcp.h> with tcpi_min_rtt
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/listening.h"
#include "common/base/status_macros.h"

namespace gleaner::probe {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> numeric(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &list) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(address.host, ": expected an IP address"));
  }
  return Addresses(list);
}

absl::Status unavailable(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// Waits until the socket can be read or written.
absl::Status wait(int fd, int16_t events, const Clock& clock, absl::Duration deadline) {
  while (true) {
    const absl::Duration left = deadline - clock.since_start();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("the peer did not answer in time");
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return unavailable("poll");
  }
}

std::string host_of(const sockaddr_storage& address) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof(address), host.data(), host.size(), port.data(),
              port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return host.data();
}

}  // namespace

absl::StatusOr<Socket> Socket::listen(const Address& address) {
  absl::StatusOr<Descriptor> listening = listen_on(address);
  if (!listening.ok()) return absl::UnavailableError(listening.status().message());
  return Socket(*std::move(listening));
}

absl::StatusOr<Socket> Socket::connect(const Address& address, const Clock& clock, absl::Duration deadline) {
  GLN_ASSIGN_OR_RETURN(const Addresses list, numeric(address));
  Socket socket{Descriptor(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))};
  if (!socket.descriptor_.valid()) return unavailable("socket");
  if (::connect(socket.fd(), list->ai_addr, list->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return unavailable(address.to_string().c_str());
    GLN_RETURN_IF_ERROR(wait(socket.fd(), POLLOUT, clock, deadline));
    socklen_t size = sizeof(errno);
    int error = 0;
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return unavailable(address.to_string().c_str());
  }
  return socket;
}

absl::StatusOr<Socket> Socket::accept() const {
  Socket socket{Descriptor(accept4(fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC))};
  if (!socket.descriptor_.valid()) return unavailable("accept");
  return socket;
}

absl::Status Socket::read(void* bytes, size_t count, const Clock& clock, absl::Duration deadline) const {
  auto* to = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = recv(fd(), to, count, 0);
    if (got == 0) return absl::UnavailableError("the peer ended the connection");
    if (got < 0) {
      if (errno != EAGAIN && errno != EINTR) return unavailable("recv");
      GLN_RETURN_IF_ERROR(wait(fd(), POLLIN, clock, deadline));
      continue;
    }
    to += got;
    count -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status Socket::write(const void* bytes, size_t count, const Clock& clock, absl::Duration deadline) const {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = send(fd(), from, count, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) return unavailable("send");
      GLN_RETURN_IF_ERROR(wait(fd(), POLLOUT, clock, deadline));
      continue;
    }
    from += sent;
    count -= static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::StatusOr<Address> Socket::local_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return unavailable("getsockname");
  const uint16_t port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                                      : reinterpret_cast<const sockaddr_in*>(&address)->sin_port;
  return Address{host_of(address), ntohs(port)};
}

absl::Duration Socket::least_round_trip() const {
  tcp_info info{};
  socklen_t size = sizeof(info);
  const bool told = getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
                    size >= offsetof(tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt);
  if (!told || info.tcpi_min_rtt == 0 || info.tcpi_min_rtt == UINT32_MAX) return absl::InfiniteDuration();
  return absl::Microseconds(info.tcpi_min_rtt);
}

bool Socket::is_to_itself() const {
  sockaddr_storage here{}, there{};
  socklen_t size = sizeof(here);
  if (getsockname(fd(), reinterpret_cast<sockaddr*>(&here), &size) != 0) return false;
  size = sizeof(there);
  if (getpeername(fd(), reinterpret_cast<sockaddr*>(&there), &size) != 0) return false;
  return host_of(here) == host_of(there);
}

}  // namespace gleaner::probe
