// Functions that pair the ports of two hosts, so that a connection uses all of them, with one queue pair per pair of
// ports. Pure.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <vector>

namespace gleaner::transport::rdma {

// One end of a path: a port of either host.
struct PathEnd {
  sockaddr_storage address{};
  int network_bits = 0;          // of the address's network prefix; 0: not known
  bool is_ethernet = true;       // false: InfiniBand; ports of the two kinds are never paired
  uint64_t bits_per_second = 0;  // bandwidth for payloads; 0: no payloads
};

struct Path {
  size_t ours = 0;
  size_t theirs = 0;
  uint64_t bits_per_second = 0;
};

// Returns how many leading bits `other` has in common with `end`'s address, at most end.network_bits, so that all
// addresses in the same network are equally close. -1: the addresses are of different families.
int closeness(const PathEnd& end, const sockaddr_storage& other);
bool are_the_same(const sockaddr_storage& one, const sockaddr_storage& other);
// Returns whether `other` is in `end`'s network; false if that network is not known.
bool is_in_network(const PathEnd& end, const sockaddr_storage& other);

// Returns at most `most` paths. The first is the connection's own, from ours[our_main] to theirs[their_main]. Each path
// gets the bandwidth that is left at both of its ends, and paths are added until none is left. Pairs whose addresses
// are closest (closeness()) come first, then those with the most similar places in both lists. No path leads from an
// address to itself.
//
// A fast port may have several paths: one port of 200 Gbit/s here and two of 100 there make two paths of 100.
std::vector<Path> pair_ports(const std::vector<PathEnd>& ours, size_t our_main, const std::vector<PathEnd>& theirs,
                             size_t their_main, size_t most);

}  // namespace gleaner::transport::rdma
