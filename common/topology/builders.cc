#include "common/topology/builders.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::topology {
namespace {

absl::Status check_count(absl::string_view what, uint32_t value, uint32_t least, uint64_t hosts) {
  if (value < least) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is ", value, "; give ", least, " or more"));
  }
  if (hosts <= kMaxHosts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("that makes ", hosts, " hosts; at most ", kMaxHosts, " are supported"));
}

absl::Status check_speed(const LinkSpeed& speed) {
  const auto check = [](absl::string_view what, double value, bool zero_fits) {
    if (std::isfinite(value) && (value > 0 || (zero_fits && value == 0))) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", value, "; give a finite number ", zero_fits ? "from 0 up" : "above 0"));
  };
  GLN_RETURN_IF_ERROR(check("the bandwidth in bits per second", speed.bits_per_second, false));
  GLN_RETURN_IF_ERROR(check("the uplinks' bandwidth in bits per second", speed.uplink_bits_per_second, true));
  GLN_RETURN_IF_ERROR(check("the latency in seconds", speed.latency_seconds, true));
  return check("the overhead in seconds", speed.overhead_seconds, true);
}

// Collects the parts of a regular topology.
class Parts {
 public:
  Parts(uint64_t hosts, const LinkSpeed& speed) : host_count_(static_cast<uint32_t>(hosts)), speed_(speed) {}

  // Returns the index of the new switch.
  uint32_t add_switch(std::string name) {
    switches_.push_back({std::move(name)});
    return host_count_ + static_cast<uint32_t>(switches_.size()) - 1;
  }
  void add_host(uint32_t at_switch, std::vector<uint32_t> place) {
    add_link(static_cast<uint32_t>(hosts_.size()), at_switch, speed_.bits_per_second);
    hosts_.push_back({absl::StrCat("host-", hosts_.size()), std::move(place), speed_.overhead_seconds});
  }
  // Joins two switches. `by_default`: the bandwidth without LinkSpeed::uplink_bits_per_second.
  void join(uint32_t a, uint32_t b, double by_default) {
    add_link(a, b, speed_.uplink_bits_per_second != 0 ? speed_.uplink_bits_per_second : by_default);
  }
  absl::StatusOr<Topology> make() && {
    return Topology::make(std::move(hosts_), std::move(switches_), std::move(links_));
  }

 private:
  void add_link(uint32_t a, uint32_t b, double bandwidth) {
    links_.push_back({a, b, bandwidth, bandwidth, speed_.latency_seconds});
  }

  const uint32_t host_count_;
  const LinkSpeed speed_;
  std::vector<Host> hosts_;
  std::vector<Switch> switches_;
  std::vector<Link> links_;
};

}  // namespace

absl::StatusOr<Topology> star(uint32_t hosts, const LinkSpeed& speed) {
  GLN_RETURN_IF_ERROR(check_speed(speed));
  GLN_RETURN_IF_ERROR(check_count("the number of hosts", hosts, 1, hosts));
  Parts parts(hosts, speed);
  const uint32_t centre = parts.add_switch("switch-0");
  for (uint32_t port = 0; port < hosts; ++port) parts.add_host(centre, {port});
  return std::move(parts).make();
}

absl::StatusOr<Topology> racks(uint32_t racks, uint32_t hosts, const LinkSpeed& speed) {
  GLN_RETURN_IF_ERROR(check_speed(speed));
  const uint64_t all = uint64_t{racks} * hosts;
  GLN_RETURN_IF_ERROR(check_count("the number of racks", racks, 1, all));
  GLN_RETURN_IF_ERROR(check_count("the number of hosts in a rack", hosts, 1, all));
  Parts parts(all, speed);
  const uint32_t core = parts.add_switch("core");
  for (uint32_t rack = 0; rack < racks; ++rack) {
    const uint32_t top = parts.add_switch(absl::StrCat("rack-", rack));
    for (uint32_t slot = 0; slot < hosts; ++slot) parts.add_host(top, {rack, slot});
    parts.join(top, core, hosts * speed.bits_per_second);
  }
  return std::move(parts).make();
}

absl::StatusOr<Topology> fat_tree(uint32_t k, const LinkSpeed& speed) {
  GLN_RETURN_IF_ERROR(check_speed(speed));
  constexpr uint32_t kMaxPorts = 64;
  static_assert(kMaxPorts * kMaxPorts * kMaxPorts / 4 == kMaxHosts);
  if (k < 2 || k % 2 != 0 || k > kMaxPorts) {
    return absl::InvalidArgumentError(absl::StrCat("the number of ports of a fat tree's switches is ", k,
                                                   "; give an even number from 2 to ", kMaxPorts, ", for example 4"));
  }
  const uint64_t half = k / 2;
  Parts parts(half * half * k, speed);
  std::vector<uint32_t> cores;
  for (uint32_t i = 0; i < half * half; ++i) cores.push_back(parts.add_switch(absl::StrCat("core-", i)));
  for (uint32_t pod = 0; pod < k; ++pod) {
    std::vector<uint32_t> aggregations;
    for (uint32_t i = 0; i < half; ++i) {
      aggregations.push_back(parts.add_switch(absl::StrCat("pod-", pod, "-aggregation-", i)));
      for (uint32_t up = 0; up < half; ++up) {
        parts.join(aggregations.back(), cores[i * half + up], speed.bits_per_second);
      }
    }
    for (uint32_t i = 0; i < half; ++i) {
      const uint32_t edge = parts.add_switch(absl::StrCat("pod-", pod, "-edge-", i));
      for (const uint32_t aggregation : aggregations) parts.join(edge, aggregation, speed.bits_per_second);
      for (uint32_t port = 0; port < half; ++port) parts.add_host(edge, {pod, i, port});
    }
  }
  return std::move(parts).make();
}

absl::StatusOr<Topology> bigraph(uint32_t hosts, uint32_t switches, const LinkSpeed& speed) {
  GLN_RETURN_IF_ERROR(check_speed(speed));
  const uint64_t all = uint64_t{switches} * hosts;
  GLN_RETURN_IF_ERROR(check_count("the number of hosts at a switch", hosts, 1, all));
  if (switches < 2 || switches % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a BiGraph of ", switches, " switches has no two equal sides; give an even number, 2 or more"));
  }
  GLN_RETURN_IF_ERROR(check_count("the number of switches", switches, 2, all));
  const uint32_t each = switches / 2;
  if (uint64_t{each} * each + all > kMaxLinks) {
    return absl::InvalidArgumentError(absl::StrCat("a BiGraph of ", switches, " switches has more links than the ",
                                                   kMaxLinks,
                                                   " that are supported; give fewer switches with more hosts each"));
  }
  Parts parts(all, speed);
  for (uint32_t side = 0; side < 2; ++side) {
    for (uint32_t i = 0; i < each; ++i) {
      const uint32_t here = parts.add_switch(absl::StrCat(side == 0 ? "upper-" : "lower-", i));
      for (uint32_t port = 0; port < hosts; ++port) parts.add_host(here, {side, i, port});
    }
  }
  const uint32_t first = static_cast<uint32_t>(all);
  for (uint32_t upper = 0; upper < each; ++upper) {
    for (uint32_t lower = 0; lower < each; ++lower) {
      parts.join(first + upper, first + each + lower, speed.bits_per_second);
    }
  }
  return std::move(parts).make();
}

}  // namespace gleaner::topology
