// Functions for non-blocking TCP sockets: wrappers of system calls that return errors as Status.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"
#include "common/base/listening.h"
#include "common/transport/transport.h"

namespace gleaner::transport::tcp {

using Target = SocketAddress;
using gleaner::listen_on;
using gleaner::local_address;
using gleaner::resolve;
using gleaner::to_address;

// Starts to connect to `target`. Errors are Unavailable and name `address`, which is `target` as the user wrote it.
absl::StatusOr<Descriptor> start_connect(const Target& target, const std::string& address);
// Returns the outcome of start_connect(); call it once the socket is writable.
absl::Status connect_outcome(const Descriptor& socket, const std::string& address);

std::string peer_address(const Descriptor& socket);  // "a peer that is gone" after a disconnect
// Turns off Nagle's algorithm, and BBR where it is the default (socket.cc says why).
void tune(const Descriptor& socket);

// Limits the rate at which the socket sends from now on; the kernel spaces the packets.
void pace(const Descriptor& socket, double bits_per_second);

// Returns the least round-trip time of the last minutes, as the kernel measured it; zero if unknown.
absl::Duration least_round_trip(const Descriptor& socket);
// Returns the bytes that the peer has confirmed; nothing if the kernel does not count them (before Linux 4.10).
std::optional<Sent> confirmed(const Descriptor& socket);

}  // namespace gleaner::transport::tcp
