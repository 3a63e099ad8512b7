#include "agent/probe/udp_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"

namespace gleaner::probe {
namespace {

absl::Status bind_error(int error, const Address& address) {
  const std::string what = absl::StrCat("can't receive UDP at ", address.to_string());
  switch (error) {
    case EADDRINUSE:
      return absl::UnavailableError(absl::StrCat(what, ": the port is in use; choose another, or 0 for any free one"));
    case EAFNOSUPPORT:
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": this machine has no such address; give one of its addresses, or 0.0.0.0 for all of them"));
    default:
      return exhausted(what, error);
  }
}

}  // namespace

absl::StatusOr<UdpSocket> UdpSocket::bind(const Address& address) {
  GLN_ASSIGN_OR_RETURN(const std::vector<SocketAddress> targets, gleaner::resolve(address));
  const SocketAddress& target = targets.front();  // resolve() returns at least one
  Descriptor socket(::socket(target.address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int one = 1;
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) != 0 ||
      setsockopt(socket.get(), SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) != 0) {
    return bind_error(errno, address);
  }
  return UdpSocket(std::move(socket));
}

absl::Status UdpSocket::send(ConstBytes bytes, const SocketAddress& to) const {
  const auto* address = reinterpret_cast<const sockaddr*>(&to.address);
  if (sendto(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL, address, to.size) >= 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("sendto: ", std::strerror(errno)));
}

absl::StatusOr<std::optional<UdpSocket::Received>> UdpSocket::receive(MutableBytes into) const {
  Received received{};
  iovec part{into.data(), into.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(timespec))> control{};
  msghdr message{};
  message.msg_name = &received.from.address;
  message.msg_namelen = sizeof(received.from.address);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = recvmsg(fd(), &message, 0);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::nullopt;
    return absl::UnavailableError(absl::StrCat("recvmsg: ", std::strerror(errno)));
  }
  received.bytes = static_cast<size_t>(bytes);
  received.from.size = message.msg_namelen;
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time{};
    std::memcpy(&time, CMSG_DATA(each), sizeof(time));
    received.at = absl::TimeFromTimespec(time);
    return received;
  }
  return absl::InternalError("the kernel gives no time of arrival");
}

}  // namespace gleaner::probe
