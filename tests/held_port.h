// HeldPort: a free TCP port of 127.0.0.1 that belongs to the test as long as the object lives. The test's servers may
// listen on it, one after the other; connections between two servers are refused. The object keeps a socket bound to
// the port that does not listen, so the kernel gives the port to no other process that asks for any free port. A server
// needs SO_REUSEADDR to listen beside that socket; gRPC and the transports set it.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace gleaner {

class HeldPort {
 public:
  HeldPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int one = 1;
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
  }
  ~HeldPort() { ::close(socket_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  uint16_t port() const { return port_; }

 private:
  const int socket_;
  uint16_t port_ = 0;
};

}  // namespace gleaner
