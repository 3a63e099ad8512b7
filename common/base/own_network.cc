#include "common/base/own_network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/listening.h"
#include "common/base/status_macros.h"

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

}  // namespace

std::string network_id() {
  struct stat found {};
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!std::getline(file, boot) || stat("/proc/self/ns/net", &found) != 0) return "";
  return absl::StrCat(boot, ".", absl::Hex(found.st_ino));
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};  // gethostname() may leave out the zero behind a long name
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string loopback_host() {
  const bool has_v4 = listen_on({"127.0.0.1", 0}).ok(), has_v6 = !has_v4 && listen_on({"::1", 0}).ok();
  return has_v6 ? "::1" : "127.0.0.1";
}

absl::StatusOr<std::string> source_host(const Address& peer) {
  GLN_ASSIGN_OR_RETURN(const std::vector<SocketAddress> targets, resolve(peer));
  absl::Status status = absl::UnavailableError(absl::StrCat("'", peer.host, "' has no address"));
  for (const SocketAddress& target : targets) {
    const Descriptor socket(::socket(target.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.valid() && connect(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size) == 0) {
      GLN_ASSIGN_OR_RETURN(Address source, local_address(socket));
      return std::move(source.host);
    }
    status = absl::UnavailableError(absl::StrCat("no route to ", peer.to_string(), ": ", std::strerror(errno)));
  }
  return status;
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
