// Topology is a network: hosts, switches, and the links between them. The planner, rank maps and the simulator read the
// same value. Pure.
//
// Nodes have indexes: the hosts first, in the order of `hosts`, then the switches. A link is full duplex; each of its
// two directions is a *channel* with a bandwidth of its own. Channel 2·l leads from link l's a to its b, and channel
// 2·l + 1 leads back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::topology {

inline constexpr uint32_t kMaxHosts = 65536;
inline constexpr uint32_t kMaxSwitches = 32768;
inline constexpr uint32_t kMaxLinks = 1 << 23;
// Limits the memory of Paths: the most pairs of an inner node and an inner node with hosts (common/topology/paths.h).
inline constexpr uint64_t kMaxDistances = 1 << 28;

struct Host {
  std::string name;
  // The host's position, from outer to inner: {side, switch, port} in a BiGraph, {rack, slot} in racks, {pod, edge
  // switch, port} in a fat tree. Empty: unknown.
  std::vector<uint32_t> place;
  // How long the host's processor takes to send a message, and to receive one: the overhead o of LogP (Culler et al.,
  // PPoPP 1993). 0: nothing is known of it.
  double overhead_seconds = 0;
};

struct Switch {
  std::string name;
};

struct Link {
  uint32_t a = 0;  // index of a node
  uint32_t b = 0;
  double bits_per_second = 0;       // from a to b; > 0 and finite
  double back_bits_per_second = 0;  // from b to a; > 0 and finite
  double latency_seconds = 0;       // each way; >= 0 and finite
};

class Topology {
 public:
  // The end of a channel, as its first node sees it.
  struct Neighbour {
    uint32_t node = 0;
    uint32_t channel = 0;
  };

  // Returns the topology of these parts. InvalidArgument names the host, switch or link that is wrong: there is no
  // host, a name breaks the rules of common/base/names.h or occurs twice, a link's end does not exist or both ends are
  // one node, a bandwidth, latency or overhead is out of range, a host can't reach the others, or a limit is exceeded.
  // A path leads through a host only if there is no switch. Links may be parallel.
  static absl::StatusOr<Topology> make(std::vector<Host> hosts, std::vector<Switch> switches, std::vector<Link> links);

  const std::vector<Host>& hosts() const { return hosts_; }
  const std::vector<Switch>& switches() const { return switches_; }
  const std::vector<Link>& links() const { return links_; }

  uint32_t host_count() const { return static_cast<uint32_t>(hosts_.size()); }
  uint32_t node_count() const { return static_cast<uint32_t>(hosts_.size() + switches_.size()); }
  uint32_t channel_count() const { return static_cast<uint32_t>(2 * links_.size()); }
  bool is_host(uint32_t node) const { return node < hosts_.size(); }
  const std::string& name(uint32_t node) const;

  uint32_t from(uint32_t channel) const { return channel % 2 == 0 ? links_[channel / 2].a : links_[channel / 2].b; }
  uint32_t to(uint32_t channel) const { return from(channel ^ 1); }
  double bits_per_second(uint32_t channel) const {
    const Link& link = links_[channel / 2];
    return channel % 2 == 0 ? link.bits_per_second : link.back_bits_per_second;
  }
  double latency_seconds(uint32_t channel) const { return links_[channel / 2].latency_seconds; }

  // Returns the channels that begin at a node, in the order of the links.
  std::span<const Neighbour> neighbours(uint32_t node) const;
  // Returns the end of the only link of a host, if that is a switch. Nothing for a host with more links or beside a
  // host.
  std::optional<Neighbour> only_switch(uint32_t host) const;

 private:
  void index_neighbours();

  std::vector<Host> hosts_;
  std::vector<Switch> switches_;
  std::vector<Link> links_;
  std::vector<uint32_t> first_;  // by node: its first element of neighbours_; one more at the end
  std::vector<Neighbour> neighbours_;
};

}  // namespace gleaner::topology
