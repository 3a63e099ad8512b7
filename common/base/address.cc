#include "common/base/address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/names.h"

namespace gleaner {
namespace {

constexpr size_t kMaxHostBytes = 255;  // limit of a DNS name

}  // namespace

std::string Address::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<Address> Address::parse(absl::string_view text) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat(quote(text), " is not an address; write HOST:PORT, for example 127.0.0.1:7000 or [::1]:7000"));
  };
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return invalid();
  absl::string_view host = text.substr(0, colon);
  const absl::string_view digits = text.substr(colon + 1);
  uint32_t port = 0;
  // SimpleAtoi alone would accept a sign and spaces.
  if (!std::ranges::all_of(digits, absl::ascii_isdigit) || !absl::SimpleAtoi(digits, &port) || port > 65535) {
    return invalid();
  }
  const bool v6 = host.find(':') != absl::string_view::npos;
  if (v6) {
    if (host.size() < 4 || host.front() != '[' || host.back() != ']') return invalid();
    host = host.substr(1, host.size() - 2);
  }
  const auto allowed = [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '[' && c != ']';
  };
  if (host.empty() || host.size() > kMaxHostBytes || !std::ranges::all_of(host, allowed)) return invalid();
  return Address{std::string(host), static_cast<uint16_t>(port)};
}

}  // namespace gleaner
