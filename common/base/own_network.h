// Functions that say where this process is in the network.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/address.h"

namespace gleaner {

// Returns an id of the network namespace of this process: the boot ID of the machine, and the inode of the namespace.
// Two processes reach each other by loopback addresses only if they have the same id. Empty: the kernel does not tell.
std::string network_id();

// Returns the name of this host; empty: the kernel does not tell.
std::string host_name();

// Returns the loopback address of this machine: 127.0.0.1, or ::1 if the machine has only that.
std::string loopback_host();

// Returns the host from which this process sends to `peer`: the source address of the route to it, as a number. Sends
// nothing. The look-up of a name may block. Errors: as resolve(), or Unavailable if there is no route.
absl::StatusOr<std::string> source_host(const Address& peer);

}  // namespace gleaner
