#include "tests/unit/network/proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gleaner::network {
namespace {

constexpr uint64_t kHandshakeBytes = 1024;
constexpr uint64_t kResetAfter = 64 << 10;
constexpr size_t kLargePiece = 4096;

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Closes the socket such that the peer's next call fails, as if a machine on the way had dropped the connection.
void reset(int socket) {
  const linger at_once{1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(socket);
}

bool send_all(int socket, const std::byte* bytes, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

Proxy::Proxy(Way way) : way_(way), bytes_(16 << 10) {
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, 64), 0);
  EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  address_ = {"127.0.0.1", ntohs(address.sin_port)};
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  stopping_ = true;
  thread_.join();
  for (const Pair& pair : pairs_) {
    close(pair.client);
    close(pair.server);
  }
  close(listener_);
}

void Proxy::run() {
  while (!stopping_) {
    std::vector<pollfd> waited = {{listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      waited.push_back({pair.client, POLLIN, 0});
      waited.push_back({pair.server, POLLIN, 0});
    }
    if (poll(waited.data(), waited.size(), 20) <= 0) continue;
    size_t i = 1;
    for (Pair& pair : pairs_) {
      if (waited[i++].revents != 0 && !pair.over) forward(pair, true);
      if (waited[i++].revents != 0 && !pair.over) forward(pair, false);
    }
    std::erase_if(pairs_, [](const Pair& pair) { return pair.over; });
    if (waited[0].revents != 0) accept_one();
  }
}

void Proxy::accept_one() {
  Pair pair;
  pair.client = accept(listener_, nullptr, nullptr);
  pair.server = socket(AF_INET, SOCK_STREAM, 0);
  ++connections_;
  const sockaddr_in target = loopback(port_);
  if (connect(pair.server, reinterpret_cast<const sockaddr*>(&target), sizeof(target)) == 0) {
    pairs_.push_back(pair);
    return;
  }
  reset(pair.client);
  close(pair.server);
}

void Proxy::forward(Pair& pair, bool to_server) {
  const ssize_t got = recv(to_server ? pair.client : pair.server, bytes_.data(), bytes_.size(), 0);
  bool good = got > 0;
  const auto size = static_cast<size_t>(good ? got : 0);
  if (to_server) {
    const bool shaken = pair.forwarded > kHandshakeBytes || size >= kLargePiece;
    pair.forwarded += size;
    if (way_ == Way::kReset && pair.forwarded > kResetAfter) good = false;
    if (way_ == Way::kFlip && shaken && size >= kLargePiece) bytes_[size / 2] ^= std::byte{1};
  }
  if (good && send_all(to_server ? pair.server : pair.client, bytes_.data(), size)) return;
  reset(pair.client);
  reset(pair.server);
  pair.over = true;
}

}  // namespace gleaner::network
