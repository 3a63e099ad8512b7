#include "comm-lib/local/channel.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace gleaner::local {
namespace {

// Room for one descriptor, aligned as the kernel wants it.
union Control {
  cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

bool send_packet(int socket, ConstBytes bytes, int attached) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (attached >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &attached, sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

Descriptor attached_to(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
    return Descriptor(fd);
  }
  return {};
}

}  // namespace

void Channel::queue(Message message, ConstBytes payload, Descriptor attached) {
  if (!socket_.valid()) return;
  message.payload_bytes = static_cast<uint32_t>(payload.size());
  const auto size = static_cast<uint32_t>(sizeof(Message) + payload.size());
  const bool joins = sent_packets_ < packets_.size() && !attached.valid() && !packets_.back().attached.valid() &&
                     packets_.back().bytes + size <= kMaxPacket;
  if (!joins) packets_.push_back({0, std::move(attached)});
  packets_.back().bytes += size;
  const auto header = std::as_bytes(std::span(&message, 1));
  bytes_.insert(bytes_.end(), header.begin(), header.end());
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
}

void Channel::flush() {
  while (!drained()) {
    Outgoing& packet = packets_[sent_packets_];
    if (!send_packet(socket_.get(), ConstBytes(bytes_).subspan(sent_bytes_, packet.bytes), packet.attached.get())) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM) return;
      break;
    }
    packet.attached.reset();
    sent_bytes_ += packet.bytes;
    ++sent_packets_;
  }
  drop();
}

void Channel::drop() {
  bytes_.clear();
  packets_.clear();
  sent_packets_ = 0;
  sent_bytes_ = 0;
}

Channel::Receipt Channel::receive(Packet& packet) {
  while (socket_.valid()) {
    iovec part{incoming_.data(), incoming_.size()};
    Control control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = CMSG_LEN(sizeof(int));  // no room for a second one, which nobody would close
    const ssize_t size = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size > 0) {
      packet.bytes = ConstBytes(incoming_).first(static_cast<size_t>(size));
      packet.attached = attached_to(message);
      return Receipt::kPacket;
    }
    if (size == 0) return Receipt::kClosed;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Receipt::kNothing;
    // A peer that closed without reading all that we sent: reported once, and its last packets come after that.
    if (errno != EINTR && errno != ECONNRESET) return Receipt::kClosed;
  }
  return Receipt::kNothing;
}

void Channel::close() {
  socket_.reset();
  drop();
}

}  // namespace gleaner::local
