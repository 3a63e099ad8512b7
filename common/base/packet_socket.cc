#include "common/base/packet_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace gleaner {
namespace {

// Room for one descriptor, aligned as the kernel wants it.
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
  message.msg_controllen = CMSG_LEN(sizeof(int));  // no room for a second one, which nobody would close
  ssize_t size = 0;
  do {
    size = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // A peer that closed without having read all that we sent is reported once, and its last packets come after that.
  } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size > 0) return {ReceivedPacket::Kind::kPacket, static_cast<size_t>(size), attached_to(message)};
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
  return {ReceivedPacket::Kind::kClosed, 0, {}};
}

}  // namespace gleaner
