#include "coordinator/service/unauthenticated_streams.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace gleaner::coordinator {
namespace {

std::string ipv6_host(const in6_addr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (IN6_IS_ADDR_V4MAPPED(&address)) return inet_ntop(AF_INET, &address.s6_addr[12], text.data(), text.size());
  in6_addr prefix = address;
  std::fill(std::begin(prefix.s6_addr) + 8, std::end(prefix.s6_addr), 0);
  return absl::StrCat(inet_ntop(AF_INET6, &prefix, text.data(), text.size()), "/64");
}

}  // namespace

std::string host_of_peer(absl::string_view peer) {
  absl::string_view address = peer.substr(0, peer.rfind(':'));
  if (absl::ConsumePrefix(&address, "ipv4:")) return std::string(address);
  if (!absl::ConsumePrefix(&address, "ipv6:")) return std::string(peer);
  std::string text = absl::StrReplaceAll(address, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  text = text.substr(0, text.find('%'));  // drops the zone of a link-local address
  in6_addr parsed{};
  return inet_pton(AF_INET6, text.c_str(), &parsed) == 1 ? ipv6_host(parsed) : text;
}

UnauthenticatedStreams::Slot& UnauthenticatedStreams::Slot::operator=(Slot&& other) noexcept {
  if (this == &other) return *this;
  release();
  streams_ = std::move(other.streams_);
  host_ = std::move(other.host_);
  return *this;
}

void UnauthenticatedStreams::Slot::release() {
  if (const auto streams = std::exchange(streams_, nullptr)) streams->remove(host_);
}

UnauthenticatedStreams::Slot UnauthenticatedStreams::admit(absl::string_view peer) {
  std::string host = host_of_peer(peer);
  absl::MutexLock lock(&mutex_);
  if (count_ == most_) return {};
  size_t& here = by_host_[host];
  if (here == most_per_host_) return {};
  ++here;
  ++count_;
  return {shared_from_this(), std::move(host)};
}

void UnauthenticatedStreams::remove(const std::string& host) {
  absl::MutexLock lock(&mutex_);
  --count_;
  const auto found = by_host_.find(host);
  if (--found->second == 0) by_host_.erase(found);
}

}  // namespace gleaner::coordinator
