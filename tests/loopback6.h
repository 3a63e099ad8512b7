// has_loopback6(): whether a program can listen on ::1 here. A test that needs it is skipped otherwise.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gleaner {

inline bool has_loopback6() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_addr = in6addr_loopback;
  const bool can = socket >= 0 && ::bind(socket, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0;
  if (socket >= 0) ::close(socket);
  return can;
}

}  // namespace gleaner

#define SKIP_WITHOUT_LOOPBACK6() \
  if (!gleaner::has_loopback6()) GTEST_SKIP() << "this machine has no IPv6 loopback: can't bind ::1"
