#include "common/strategy/rack_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "common/base/status_macros.h"
#include "common/collective/cost.h"
#include "common/plan/uplinks.h"

namespace gleaner::strategy {
namespace {

// Returns the outermost place, or the switch, of each host. Nothing: a host has neither.
std::optional<std::vector<uint32_t>> rack_numbers(const topology::Topology& topology, uint32_t hosts, bool by_place) {
  std::vector<uint32_t> numbers;
  for (uint32_t host = 0; host < hosts; ++host) {
    const std::vector<uint32_t>& place = topology.hosts()[host].place;
    const auto only = topology.only_switch(host);
    if (by_place ? place.size() < 2 : !only.has_value()) return std::nullopt;
    numbers.push_back(by_place ? place.front() : only->node);
  }
  return numbers;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRackProbeBytes = 1 << 30;

// The links of hosts, and those on the paths between them.
class HostLinks {
 public:
  explicit HostLinks(const topology::Network& network) : network_(network) {}

  // Returns the bandwidth of a host's own link, of the slower direction.
  double own_link(uint32_t host) const {
    double out = 0, in = 0;
    for (const topology::Topology::Neighbour& next : network_.topology.neighbours(host)) {
      out += network_.topology.bits_per_second(next.channel);
      in += network_.topology.bits_per_second(next.channel ^ 1);
    }
    return std::min(out, in);
  }

  double latency(uint32_t from, uint32_t to) {
    double sum = 0;
    for (const uint32_t channel : path(from, to)) sum += network_.topology.latency_seconds(channel);
    return sum;
  }

  // Returns the slowest link between switches on the paths both ways.
  double slowest_between_switches(uint32_t from, uint32_t to) {
    double slowest = kInfinity;
    for (const auto& [a, b] : {std::pair{from, to}, std::pair{to, from}}) {
      for (const uint32_t channel : path(a, b)) {
        if (network_.topology.is_host(network_.topology.from(channel)) ||
            network_.topology.is_host(network_.topology.to(channel)))
          continue;
        slowest = std::min(slowest, network_.topology.bits_per_second(channel));
      }
    }
    return slowest;
  }

 private:
  const std::vector<uint32_t>& path(uint32_t from, uint32_t to) {
    path_.clear();
    network_.paths.append_path(from, to, collective::flow_between(from, to), path_);
    return path_;
  }

  const topology::Network& network_;
  std::vector<uint32_t> path_;
};

uint32_t master_of(HostLinks& links, const std::vector<uint32_t>& rack) {
  return *std::ranges::max_element(rack, {}, [&](uint32_t host) { return links.own_link(host); });
}

// The longest latencies between workers of one rack, and between those of different racks.
struct Latencies {
  double within = 0;
  double across = 0;
};

Latencies latencies_of(HostLinks& links, const collective::Groups& racks) {
  Latencies longest;
  for (const std::vector<uint32_t>& from : racks) {
    for (const std::vector<uint32_t>& to : racks) {
      double& most = &from == &to ? longest.within : longest.across;
      for (const uint32_t a : from) {
        for (const uint32_t b : to) most = std::max(most, a == b ? 0 : links.latency(a, b));
      }
    }
  }
  return longest;
}

}  // namespace

collective::Groups racks_of(const topology::Topology& topology, uint32_t hosts) {
  auto numbers = rack_numbers(topology, hosts, true);
  if (!numbers.has_value()) numbers = rack_numbers(topology, hosts, false);
  if (!numbers.has_value()) return {};
  collective::Groups racks;
  std::map<uint32_t, size_t> index_of;
  for (uint32_t host = 0; host < hosts; ++host) {
    const auto [found, is_new] = index_of.try_emplace((*numbers)[host], racks.size());
    if (is_new) racks.emplace_back();
    racks[found->second].push_back(host);
  }
  if (racks.size() < 2) racks.clear();
  return racks;
}

std::vector<uint32_t> equal_stages(const collective::Groups& racks) {
  if (racks.empty() || racks.front().size() < 2) return {};
  for (const std::vector<uint32_t>& rack : racks) {
    if (rack.size() != racks.front().size()) return {};
  }
  return {static_cast<uint32_t>(racks.size()), static_cast<uint32_t>(racks.front().size())};
}

std::vector<Rack> describe_racks(const topology::Network& network, const collective::Groups& racks) {
  HostLinks links(network);
  std::vector<Rack> described;
  for (const std::vector<uint32_t>& hosts : racks) {
    const uint32_t master = master_of(links, hosts);
    Rack rack{static_cast<uint32_t>(hosts.size()), links.own_link(master), kInfinity, kInfinity};
    for (const uint32_t host : hosts) {
      if (host != master) rack.slowest_other = std::min(rack.slowest_other, links.own_link(host));
    }
    // The own uplink is on the paths to all other racks, and theirs only on one, so the fastest path has no slower one.
    double fastest = 0;
    for (const std::vector<uint32_t>& others : racks) {
      if (&others == &hosts) continue;
      fastest = std::max(fastest, links.slowest_between_switches(master, others.front()));
    }
    if (fastest > 0) rack.uplink = fastest;
    described.push_back(rack);
  }
  return described;
}

absl::StatusOr<RackTimes> compare_racks(const topology::Network& network, const collective::Groups& racks) {
  const std::vector<Rack> described = describe_racks(network, racks);
  uint32_t workers = 0;
  for (const Rack& rack : described) workers += rack.workers;
  GLN_ASSIGN_OR_RETURN(const plan::UplinkBound flat,
                       plan::bound_with_uplinks(network.topology, workers, 0, kRackProbeBytes));
  RackTimes times;
  times.flat_seconds_per_byte = flat.seconds / kRackProbeBytes;
  const double count = static_cast<double>(described.size());
  const double around = 2 * (workers - 1.0) / workers * 8;
  const double across = 2 * (count - 1) / count * 8;  // bits for each byte of the vector
  for (const Rack& rack : described) {
    const double members = 8.0 * (rack.workers - 1);
    times.within_seconds_per_byte =
        std::max({times.within_seconds_per_byte, members / rack.master, 8 / rack.slowest_other});
    times.across_seconds_per_byte =
        std::max(times.across_seconds_per_byte, across / std::min(rack.master, rack.uplink));
    times.ring_seconds_per_byte =
        std::max(times.ring_seconds_per_byte, around / std::min({rack.master, rack.slowest_other, rack.uplink}));
    times.two_level_seconds_per_byte = std::max(times.two_level_seconds_per_byte, (members + across) / rack.master);
  }
  times.two_level_seconds_per_byte =
      std::max({times.two_level_seconds_per_byte, times.within_seconds_per_byte, times.across_seconds_per_byte});
  HostLinks links(network);
  const Latencies longest = latencies_of(links, racks);
  times.flat_latency_seconds = 2 * longest.across;
  times.ring_latency_seconds = 2 * (workers - 1.0) * longest.across;
  times.two_level_latency_seconds = 2 * longest.within + 2 * (count - 1) * longest.across;
  return times;
}

}  // namespace gleaner::strategy
