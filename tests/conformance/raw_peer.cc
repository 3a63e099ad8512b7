#include "tests/conformance/raw_peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gleaner::transport {

RawPeer::RawPeer(const Address& address) : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int one = 1;
  const int little = 4096;  // so that a peer that does not read soon blocks the other side
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
  sockaddr_in target{};
  target.sin_family = AF_INET;
  target.sin_port = htons(address.port);
  target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&target), sizeof(target)), 0);
}

RawPeer::~RawPeer() { close(descriptor_); }

void RawPeer::send(ConstBytes bytes) {
  EXPECT_EQ(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

void RawPeer::send(const std::string& text) { send(std::as_bytes(std::span(text))); }

void RawPeer::send(wire::Header header, ConstBytes payload) {
  wire::seal(header, payload);
  send_as_is(header);
  if (!payload.empty()) send(payload);
}

void RawPeer::send_as_is(const wire::Header& header) { send(std::as_bytes(std::span(&header, 1))); }

void RawPeer::finish() { shutdown(descriptor_, SHUT_WR); }

bool RawPeer::readable() const {
  pollfd waiting{descriptor_, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

size_t RawPeer::read_some(MutableBytes bytes) {
  const ssize_t got = recv(descriptor_, bytes.data(), bytes.size(), 0);
  return got > 0 ? static_cast<size_t>(got) : 0;
}

}  // namespace gleaner::transport
