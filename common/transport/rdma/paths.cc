#include "common/transport/rdma/paths.h"

#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>

namespace gleaner::transport::rdma {
namespace {

std::span<const uint8_t> bytes_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const uint8_t*>(&four), sizeof(four)};
  }
  if (address.ss_family != AF_INET6) return {};
  return reinterpret_cast<const sockaddr_in6&>(address).sin6_addr.s6_addr;
}

// Returns -1 if the addresses are of different families, or of one that is not known.
int common_bits(const sockaddr_storage& one, const sockaddr_storage& other) {
  const auto first = bytes_of(one);
  const auto second = bytes_of(other);
  if (first.empty() || first.size() != second.size()) return -1;
  size_t i = 0;
  while (i < first.size() && first[i] == second[i]) ++i;
  const int whole = static_cast<int>(i) * 8;
  return i == first.size() ? whole : whole + std::countl_zero(static_cast<uint8_t>(first[i] ^ second[i]));
}

// Returns the path between the two, with the bandwidth left at both ends, which is then used up.
Path take(std::vector<PathEnd>& ours, size_t i, std::vector<PathEnd>& theirs, size_t j) {
  const uint64_t rate = std::min(ours[i].bits_per_second, theirs[j].bits_per_second);
  ours[i].bits_per_second -= rate;
  theirs[j].bits_per_second -= rate;
  return {i, j, rate};
}

}  // namespace

bool are_the_same(const sockaddr_storage& one, const sockaddr_storage& other) {
  return common_bits(one, other) == static_cast<int>(bytes_of(one).size()) * 8;
}

int closeness(const PathEnd& end, const sockaddr_storage& other) {
  const int common = common_bits(end.address, other);
  return end.network_bits > 0 ? std::min(common, end.network_bits) : common;
}

bool is_in_network(const PathEnd& end, const sockaddr_storage& other) {
  return end.network_bits > 0 && closeness(end, other) == end.network_bits;
}

std::vector<Path> pair_ports(const std::vector<PathEnd>& ours, size_t our_main, const std::vector<PathEnd>& theirs,
                             size_t their_main, size_t most) {
  std::vector<PathEnd> our_rest = ours;
  std::vector<PathEnd> their_rest = theirs;
  std::vector<Path> paths{take(our_rest, our_main, their_rest, their_main)};
  while (paths.size() < most) {
    // The least distance is the best: the closest addresses, then the most similar places, then the earlier place.
    using Distance = std::tuple<int, size_t, size_t>;
    std::optional<Distance> best;
    size_t best_theirs = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      for (size_t j = 0; j < theirs.size(); ++j) {
        const int close = closeness(ours[i], theirs[j].address);
        if (our_rest[i].bits_per_second == 0 || their_rest[j].bits_per_second == 0 || close < 0 ||
            ours[i].is_ethernet != theirs[j].is_ethernet || are_the_same(ours[i].address, theirs[j].address)) {
          continue;
        }
        const Distance distance{-close, i > j ? i - j : j - i, i};
        if (best.has_value() && distance >= *best) continue;
        best = distance;
        best_theirs = j;
      }
    }
    if (!best.has_value()) break;
    paths.push_back(take(our_rest, std::get<2>(*best), their_rest, best_theirs));
  }
  return paths;
}

}  // namespace gleaner::transport::rdma
