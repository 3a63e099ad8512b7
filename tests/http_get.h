// http_get(): asks a server of this machine for a page.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/listening.h"

namespace gleaner {

// Returns the whole answer: the status line, the headers and the body.
inline std::string http_get(const Address& address, const std::string& path) {
  const SocketAddress target = resolve(address).value().front();
  const Descriptor socket(::socket(target.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size), 0)
      << address.to_string();
  const std::string request = absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n");
  EXPECT_EQ(::write(socket.get(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer, piece(4096, '\0');
  for (ssize_t got = 0; (got = ::read(socket.get(), piece.data(), piece.size())) > 0;) {
    answer.append(piece, 0, static_cast<size_t>(got));
  }
  return answer;
}

}  // namespace gleaner
