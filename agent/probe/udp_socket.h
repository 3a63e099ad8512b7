// UdpSocket sends and receives packets over UDP. Its calls do not block.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/bytes.h"
#include "common/base/descriptor.h"
#include "common/base/listening.h"

namespace gleaner::probe {

class UdpSocket {
 public:
  struct Received {
    size_t bytes = 0;  // written to `into`; the rest of a longer packet is lost
    SocketAddress from;
    absl::Time at;  // when the packet arrived, by the kernel and the machine's wall clock
  };

  // Unavailable: the port is in use. InvalidArgument: there is no such host, or this machine does not have the address.
  static absl::StatusOr<UdpSocket> bind(const Address& address);

  // Unavailable: the kernel did not send the packet, for example since there is no route.
  absl::Status send(ConstBytes bytes, const SocketAddress& to) const;
  // Returns nullopt if no packet waits.
  absl::StatusOr<std::optional<Received>> receive(MutableBytes into) const;

  absl::StatusOr<Address> local_address() const { return gleaner::local_address(descriptor_); }
  int fd() const { return descriptor_.get(); }

 private:
  explicit UdpSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace gleaner::probe
