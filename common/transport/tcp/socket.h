// Non-blocking TCP sockets: the system calls, with errors as Status.
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "common/base/address.h"

namespace gleaner::transport::tcp {

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

// Names are looked up here, which may block; numeric addresses never do.
absl::StatusOr<Socket> listen_on(const Address& address);
absl::StatusOr<Socket> start_connect(const Address& address);

absl::StatusOr<Address> local_address(const Socket& socket);
std::string peer_address(const Socket& socket);  // "?" when the peer is gone
// The outcome of a start_connect() once the socket is writable.
absl::Status connect_outcome(const Socket& socket, const std::string& address);
void set_no_delay(const Socket& socket);

}  // namespace gleaner::transport::tcp
