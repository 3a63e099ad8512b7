// A blocking TCP socket whose every call ends by a deadline.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/env.h"

namespace gleaner::probe {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  static absl::StatusOr<Socket> listen(const Address& address);
  static absl::StatusOr<Socket> connect(const Address& address, const Clock& clock, absl::Duration deadline);
  absl::StatusOr<Socket> accept() const;  // Unavailable: nobody is there

  // All bytes, or DeadlineExceeded at `deadline` of the clock's monotonic time, or Unavailable: the peer is gone.
  absl::Status read(void* bytes, size_t count, const Clock& clock, absl::Duration deadline) const;
  absl::Status write(const void* bytes, size_t count, const Clock& clock, absl::Duration deadline) const;

  absl::StatusOr<Address> local_address() const;
  bool is_to_itself() const;  // both ends are this machine's same address
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace gleaner::probe
