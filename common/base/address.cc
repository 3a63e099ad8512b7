#include "common/base/address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gleaner {

std::string Address::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<Address> Address::parse(absl::string_view text) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not an address; write HOST:PORT, for example 127.0.0.1:7000 or [::1]:7000"));
  };
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return invalid();
  absl::string_view host = text.substr(0, colon);
  uint32_t port = 0;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) return invalid();
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != absl::string_view::npos) {
    return invalid();
  }
  if (host.empty()) return invalid();
  return Address{std::string(host), static_cast<uint16_t>(port)};
}

}  // namespace gleaner
