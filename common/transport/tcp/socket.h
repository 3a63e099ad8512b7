// Non-blocking TCP sockets: the system calls, with errors as Status.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"

namespace gleaner::transport::tcp {

// One of the addresses that a host has.
struct Target {
  sockaddr_storage address;
  socklen_t size;
};

// All of them, in the system's order of preference. Looks names up, which may block; numeric addresses never do.
// InvalidArgument: no such host; Unavailable: the name service does not answer.
absl::StatusOr<std::vector<Target>> resolve(const Address& address);

// AlreadyExists: port in use; InvalidArgument: not an address of this machine.
absl::StatusOr<Descriptor> listen_on(const Address& address);
// Errors are Unavailable and say `address`, which is `target` as people wrote it.
absl::StatusOr<Descriptor> start_connect(const Target& target, const std::string& address);
// The outcome of start_connect() once the socket is writable.
absl::Status connect_outcome(const Descriptor& socket, const std::string& address);

absl::StatusOr<Address> local_address(const Descriptor& socket);
std::string peer_address(const Descriptor& socket);  // "a peer that is gone" when it is
// No waiting for more to send, and no BBR (socket.cc says why).
void tune(const Descriptor& socket);

// What it sends from now on leaves no faster: the kernel spaces the packets.
void pace(const Descriptor& socket, double bits_per_second);

// Of the last minutes, as the kernel has seen it; zero when it does not tell.
absl::Duration least_round_trip(const Descriptor& socket);

}  // namespace gleaner::transport::tcp
