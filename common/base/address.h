// Where a process listens: "HOST:PORT", "[v6]:PORT"; a name or an IP address.
#pragma once

#include <cstdint>
#include <string>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"

namespace gleaner {

struct Address {
  std::string host;
  uint16_t port = 0;  // 0 when listening: the system picks one

  std::string to_string() const;  // round-trips through parse()
  static absl::StatusOr<Address> parse(absl::string_view text);
  friend bool operator==(const Address&, const Address&) = default;
};

}  // namespace gleaner
