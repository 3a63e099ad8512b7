// Functions for non-blocking TCP sockets: wrappers of system calls that return errors as Status.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"

namespace gleaner::transport::tcp {

// One of a host's addresses, with the port.
struct Target {
  sockaddr_storage address;
  socklen_t size;
};

// Returns all addresses of the host, in the system's order of preference. The look-up of a name may block; a numeric
// address never blocks. InvalidArgument: there is no such host. Unavailable: the name service does not answer.
absl::StatusOr<std::vector<Target>> resolve(const Address& address);

// Listens on the address. AlreadyExists: the port is in use. InvalidArgument: this machine does not have the address.
absl::StatusOr<Descriptor> listen_on(const Address& address);
// Starts to connect to `target`. Errors are Unavailable and name `address`, which is `target` as the user wrote it.
absl::StatusOr<Descriptor> start_connect(const Target& target, const std::string& address);
// Returns the outcome of start_connect(); call it once the socket is writable.
absl::Status connect_outcome(const Descriptor& socket, const std::string& address);

absl::StatusOr<Address> to_address(const sockaddr_storage& storage, socklen_t size);
absl::StatusOr<Address> local_address(const Descriptor& socket);
std::string peer_address(const Descriptor& socket);  // "a peer that is gone" after a disconnect
// Turns off Nagle's algorithm, and BBR where it is the default (socket.cc says why).
void tune(const Descriptor& socket);

// Limits the rate at which the socket sends from now on; the kernel spaces the packets.
void pace(const Descriptor& socket, double bits_per_second);

// Returns the least round-trip time of the last minutes, as the kernel measured it; zero if unknown.
absl::Duration least_round_trip(const Descriptor& socket);

}  // namespace gleaner::transport::tcp
