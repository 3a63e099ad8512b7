#include "common/base/packet_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace gleaner {
namespace {

// Space for one descriptor, aligned as the kernel requires.
union Control {
  cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

Descriptor attached_to(msghdr& message) {
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
  return Descriptor(descriptor);
}

}  // namespace

int send_packet(const Descriptor& socket, ConstBytes bytes, int attached) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (attached >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(attached));
    std::memcpy(CMSG_DATA(header), &attached, sizeof(attached));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

ReceivedPacket receive_packet(const Descriptor& socket, MutableBytes into) {
  iovec part{into.data(), into.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // leaves no room for a second descriptor, which would leak
  ssize_t size = 0;
  do {
    size = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // If the peer closed without having read all our packets, the kernel reports ECONNRESET once, and delivers the
    // peer's last packets after that.
  } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size > 0) return {ReceivedPacket::Kind::kPacket, static_cast<size_t>(size), attached_to(message)};
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
  return {ReceivedPacket::Kind::kClosed, 0, {}};
}

}  // namespace gleaner
