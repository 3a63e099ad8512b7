// Functions that say where this process is in the network.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// Returns whether `host` is a loopback address or "localhost". Other names are not looked up.
bool is_loopback(absl::string_view host);

// Returns whether `host` stands for all addresses of a machine: 0.0.0.0 or ::.
bool is_unspecified(absl::string_view host);

}  // namespace gleaner
