#include "common/base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/names.h"

namespace gleaner {
namespace {

// Returns the IPv4 address in host order; none if `host` is no IPv4 address. An IPv4-mapped IPv6 address counts as one.
std::optional<uint32_t> parse_v4(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr);
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1 || !IN6_IS_ADDR_V4MAPPED(&v6)) return std::nullopt;
  std::memcpy(&v4, v6.s6_addr + 12, sizeof(v4));
  return ntohl(v4.s_addr);
}

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

bool is_loopback(absl::string_view host) {
  const std::string text(host);
  if (const std::optional<uint32_t> v4 = parse_v4(text)) return *v4 >> 24 == IN_LOOPBACKNET;
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  const std::string name = absl::AsciiStrToLower(absl::StripSuffix(host, "."));
  return name == "localhost" || name == "ip6-localhost" || absl::EndsWith(name, ".localhost");
}

bool is_unspecified(absl::string_view host) {
  const std::string text(host);
  if (const std::optional<uint32_t> v4 = parse_v4(text)) return *v4 == INADDR_ANY;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

}  // namespace gleaner
