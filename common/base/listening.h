// Functions that find the socket addresses of an Address, and listen on it. All listening sockets come from here, so
// that every HOST:PORT may have a name, an IPv4 or an IPv6 address, and errors are alike.
#pragma once

#include <sys/socket.h>

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"

namespace gleaner {

// One of a host's addresses, with the port.
struct SocketAddress {
  sockaddr_storage address;
  socklen_t size;
};

// Returns all addresses of the host, in the system's order of preference. The look-up of a name may block; a numeric
// address never blocks. InvalidArgument: there is no such host. Unavailable: the name service does not answer.
absl::StatusOr<std::vector<SocketAddress>> resolve(const Address& address);

// Listens on the address, with a socket that does not block. AlreadyExists: the port is in use. InvalidArgument: there
// is no such host, or this machine does not have the address.
absl::StatusOr<Descriptor> listen_on(const Address& address);

// Return the numeric address.
absl::StatusOr<Address> to_address(const sockaddr_storage& storage, socklen_t size);
absl::StatusOr<Address> local_address(const Descriptor& socket);

}  // namespace gleaner
