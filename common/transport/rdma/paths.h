// Which ports of two hosts are made pairs of, one queue pair each, so that a connection uses all of them. Pure.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <vector>

namespace gleaner::transport::rdma {

// A port as one host knows it of the other.
struct PathEnd {
  sockaddr_storage address{};
  int network_bits = 0;          // of its address, that it has in common with all of its network; 0: not known
  bool is_ethernet = true;       // or InfiniBand: the two do not meet
  uint64_t bits_per_second = 0;  // that it may be used for; 0: for no payloads
};

struct Path {
  size_t ours = 0;
  size_t theirs = 0;
  uint64_t bits_per_second = 0;
};

// The bits that `other` has in common with `end`'s address from its begin on, as far as these name the network: as many
// for all that is in the same one. -1: of another family.
int closeness(const PathEnd& end, const sockaddr_storage& other);
bool are_the_same(const sockaddr_storage& one, const sockaddr_storage& other);
// Whether it is in the same network, as far as that is known.
bool is_in_network(const PathEnd& end, const sockaddr_storage& other);

// The connection's own path comes first, which is that of ours[our_main] to theirs[their_main]. Then further ones, each
// with what bandwidth is left at both of its ends, until nothing is left: ports in a network in common come first, then
// those with the same place on both sides. A host with fewer ports has several paths to those that are fast enough.
// Never from an address to itself.
std::vector<Path> pair_ports(const std::vector<PathEnd>& ours, size_t our_main, const std::vector<PathEnd>& theirs,
                             size_t their_main, size_t most);

}  // namespace gleaner::transport::rdma
