// HttpPeer is a TCP client that speaks HTTP byte by byte, also where it violates the protocol.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/listening.h"

namespace gleaner {

class HttpPeer {
 public:
  // Connects to `address`. `from` is a local address; empty: any.
  explicit HttpPeer(const Address& address, const std::string& from = "") {
    const SocketAddress target = resolve(address).value().front();
    socket_ = Descriptor(::socket(target.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval deadline{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
    if (!from.empty()) {
      const SocketAddress source = resolve({from, 0}).value().front();
      EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&source.address), source.size), 0);
    }
    connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) == 0;
  }

  bool connected() const { return connected_; }

  // Returns false if the server has closed the connection.
  bool send(absl::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Reads until the server closes the connection, which it must do, or until the answer ends with `end`.
  std::string receive(absl::string_view end = "") {
    std::string answer, piece(4096, '\0');
    ssize_t got = 0;
    while ((got = ::recv(socket_.get(), piece.data(), piece.size(), 0)) > 0) {
      answer.append(piece, 0, static_cast<size_t>(got));
      if (!end.empty() && answer.size() >= end.size() && answer.substr(answer.size() - end.size()) == end) break;
    }
    EXPECT_FALSE(got < 0 && errno == EAGAIN) << "the connection is still open after: " << answer;
    return answer;
  }

  // Returns whether the server drops the connection within `time`. Does not read.
  bool is_dropped(absl::Duration time = absl::Minutes(1)) const {
    pollfd event{socket_.get(), 0, 0};
    return ::poll(&event, 1, static_cast<int>(absl::ToInt64Milliseconds(time))) == 1;
  }

 private:
  Descriptor socket_;
  bool connected_ = false;
};

}  // namespace gleaner
