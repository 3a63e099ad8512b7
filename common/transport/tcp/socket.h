// Non-blocking TCP sockets: the system calls, with errors as Status.
#pragma once

#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"

namespace gleaner::transport::tcp {

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// One of the addresses that a host has.
struct Target {
  sockaddr_storage address;
  socklen_t size;
};

// All of them, in the system's order of preference. Looks names up, which may block; numeric addresses never do.
// InvalidArgument: no such host; Unavailable: the name service does not answer.
absl::StatusOr<std::vector<Target>> resolve(const Address& address);

// AlreadyExists: port in use; InvalidArgument: not an address of this machine.
absl::StatusOr<Socket> listen_on(const Address& address);
// Errors are Unavailable and say `address`, which is `target` as people wrote it.
absl::StatusOr<Socket> start_connect(const Target& target, const std::string& address);
// The outcome of start_connect() once the socket is writable.
absl::Status connect_outcome(const Socket& socket, const std::string& address);

absl::StatusOr<Address> local_address(const Socket& socket);
std::string peer_address(const Socket& socket);  // "a peer that is gone" when it is
// No waiting for more to send, and no BBR (socket.cc says why).
void tune(const Socket& socket);

// What it sends from now on leaves no faster: the kernel spaces the packets.
void pace(const Socket& socket, double bits_per_second);

// Of the last minutes, as the kernel has seen it; zero when it does not tell.
absl::Duration least_round_trip(const Socket& socket);

// A timer that is readable once per period from now on.
absl::StatusOr<Socket> make_timer(absl::Duration period);

}  // namespace gleaner::transport::tcp
