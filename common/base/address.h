// Address is a host and a port, written "HOST:PORT" or "[v6]:PORT". The host is a name or an IP address.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner {

struct Address {
  std::string host;
  uint16_t port = 0;  // 0 in an address to listen on: the system chooses the port

  std::string to_string() const;  // round-trips through parse()
  static absl::StatusOr<Address> parse(absl::string_view text);
  friend bool operator==(const Address&, const Address&) = default;
};

// Returns whether `host` is a loopback address or "localhost". Other names are not looked up.
bool is_loopback(absl::string_view host);

// Returns whether `host` stands for all addresses of a machine: 0.0.0.0 or ::.
bool is_unspecified(absl::string_view host);

}  // namespace gleaner
