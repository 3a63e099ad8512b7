// Socket is a TCP socket whose blocking calls end at a deadline.
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"
#include "common/base/env.h"

namespace gleaner::probe {

class Socket {
 public:
  static absl::StatusOr<Socket> listen(const Address& address);
  static absl::StatusOr<Socket> connect(const Address& address, const Clock& clock, absl::Duration deadline);
  absl::StatusOr<Socket> accept() const;  // does not block; Unavailable: no connection waits

  // Transfer all `count` bytes. DeadlineExceeded: some bytes are missing at `deadline` (the clock's monotonic time).
  // Unavailable: the peer has closed the connection.
  absl::Status read(void* bytes, size_t count, const Clock& clock, absl::Duration deadline) const;
  absl::Status write(const void* bytes, size_t count, const Clock& clock, absl::Duration deadline) const;

  absl::StatusOr<Address> local_address() const;
  // Returns the shortest round trip that the kernel has seen on the connection; infinite if it does not tell.
  absl::Duration least_round_trip() const;
  bool is_to_itself() const;  // true if both ends have the same IP address
  int fd() const { return descriptor_.get(); }

 private:
  explicit Socket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace gleaner::probe
