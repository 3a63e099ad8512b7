#include "common/strategy/probed_racks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/ranks/embedding.h"
#include "common/ranks/grouping.h"
#include "common/ranks/near_groups.h"
#include "common/ranks/rank_map.h"

namespace gleaner::strategy {
namespace {

// The size of the message whose time is a distance. Latencies count as much as bandwidths in data centers, where links
// carry it in tens of microseconds.
constexpr double kMessageBytes = 64 << 10;
// An uplink counts as slow if probes across racks have less than this part of the bandwidth of those within.
constexpr double kSlowUplink = 0.9;

// The measurements between each two hosts.
class Pairs {
 public:
  explicit Pairs(const topology::Topology& probes) : hosts_(probes.host_count()), own_(hosts_) {
    bits_.resize(size_t{hosts_} * hosts_);
    latency_.resize(bits_.size());
    for (const topology::Link& link : probes.links()) {
      const bool is_own = probes.is_host(link.a) || probes.is_host(link.b);
      const double slower = std::min(link.bits_per_second, link.back_bits_per_second);
      if (is_own) {
        own_[std::min(link.a, link.b)] = slower;
        continue;
      }
      const uint32_t a = link.a - hosts_, b = link.b - hosts_;  // host i is at switch i
      bits_[index(a, b)] = bits_[index(b, a)] = slower;
      latency_[index(a, b)] = latency_[index(b, a)] = link.latency_seconds;
    }
  }

  uint32_t hosts() const { return hosts_; }
  double own(uint32_t host) const { return own_[host]; }
  double latency(uint32_t a, uint32_t b) const { return latency_[index(a, b)]; }
  double bits_per_second(uint32_t a, uint32_t b) const { return bits_[index(a, b)]; }
  // Returns the part of what both hosts' own links carry that the path carries.
  double part(uint32_t a, uint32_t b) const { return bits_per_second(a, b) / std::min(own_[a], own_[b]); }
  double message_seconds(uint32_t a, uint32_t b) const {
    return latency(a, b) + kMessageBytes * 8 / bits_per_second(a, b);
  }

 private:
  size_t index(uint32_t a, uint32_t b) const { return size_t{a} * hosts_ + b; }

  const uint32_t hosts_;
  std::vector<double> own_;             // bit/s of each host's own link
  std::vector<double> bits_, latency_;  // by two hosts
};

// A grouping of the workers.
struct Grouping {
  ranks::Groups groups;
  std::vector<uint32_t> group_of;
};

Grouping grouping_of(ranks::Groups groups, uint32_t workers) {
  Grouping made{std::move(groups), std::vector<uint32_t>(workers)};
  for (uint32_t group = 0; group < made.groups.size(); ++group) {
    for (const uint32_t host : made.groups[group]) made.group_of[host] = group;
  }
  return made;
}

// Returns this number of groups, whose sizes differ by one at most.
absl::StatusOr<ranks::Groups> even_groups(const ranks::Distances& distances, uint32_t groups) {
  const ranks::Distances embeddable = ranks::limited(distances);
  GLN_ASSIGN_OR_RETURN(const ranks::Embedding embedding, ranks::embed(embeddable, {}));
  GLN_ASSIGN_OR_RETURN(ranks::Groups made, ranks::group(embedding, {.groups = groups}));
  return ranks::improve_by_exchanges(distances, std::move(made));
}

// The tree that a grouping makes of pairs.
class Tree {
 public:
  Tree(const topology::Topology& probes, const Pairs& pairs, const Grouping& grouping)
      : probes_(probes), pairs_(pairs), grouping_(grouping), racks_(grouping.groups) {
    std::vector<double> parts, near, far;
    const auto workers = static_cast<uint32_t>(grouping.group_of.size());
    for (uint32_t a = 0; a < workers; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        const bool is_near = grouping.group_of[a] == grouping.group_of[b];
        (is_near ? near : far).push_back(pairs.latency(a, b));
        if (is_near) parts.push_back(pairs.part(a, b));
      }
    }
    near_latency_ = upper_median(std::move(near));
    uplink_latency_ = far.empty() ? 0 : std::max(0.0, upper_median(std::move(far)) - near_latency_) / 2;
    near_part_ = parts.empty() ? 1 : upper_median(std::move(parts));
    for (uint32_t host = workers; host < pairs.hosts(); ++host) racks_[nearest(host)].push_back(host);
  }

  absl::StatusOr<topology::Topology> make() const {
    std::vector<topology::Switch> switches;
    std::vector<topology::Link> links(probes_.host_count());
    absl::flat_hash_set<std::string> taken;
    for (const topology::Host& host : probes_.hosts()) taken.insert(host.name);
    const auto add_switch = [&](std::string name) {
      while (!taken.insert(name).second) name += "-";
      switches.push_back({name});
      return static_cast<uint32_t>(probes_.host_count() + switches.size() - 1);
    };
    const uint32_t core = racks_.size() > 1 ? add_switch("core") : 0;
    for (uint32_t rack = 0; rack < racks_.size(); ++rack) {
      const uint32_t at = add_switch(absl::StrCat("group-", rack));
      for (const uint32_t host : racks_[rack]) {
        links[host] = {host, at, pairs_.own(host), pairs_.own(host), near_latency_ / 2};
      }
      if (racks_.size() == 1) continue;
      const double uplink = uplink_of(rack);
      links.push_back({at, core, uplink, uplink, uplink_latency_});
    }
    return topology::Topology::make(probes_.hosts(), std::move(switches), std::move(links));
  }

 private:
  // Returns the rack to whose workers the messages of a host take least time.
  uint32_t nearest(uint32_t host) const {
    uint32_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t group = 0; group < grouping_.groups.size(); ++group) {
      std::vector<double> seconds;
      for (const uint32_t worker : grouping_.groups[group]) {
        seconds.push_back(pairs_.message_seconds(host, worker));
      }
      const double usual = upper_median(std::move(seconds));
      if (usual < least) {
        least = usual;
        best = group;
      }
    }
    return best;
  }

  // A path across racks is as fast as the slower one of both uplinks, so the fastest path tells a rack's own.
  double uplink_of(uint32_t rack) const {
    double fastest = 0, part = 0;
    for (uint32_t other = 0; other < grouping_.groups.size(); ++other) {
      if (other == rack) continue;
      std::vector<double> bits, parts;
      for (const uint32_t a : grouping_.groups[rack]) {
        for (const uint32_t b : grouping_.groups[other]) {
          bits.push_back(pairs_.bits_per_second(a, b));
          parts.push_back(pairs_.part(a, b));
        }
      }
      fastest = std::max(fastest, upper_median(std::move(bits)));
      part = std::max(part, upper_median(std::move(parts)));
    }
    if (part < kSlowUplink * near_part_) return fastest;
    double all = 0;
    for (const uint32_t host : racks_[rack]) all += pairs_.own(host);
    return all;
  }

  const topology::Topology& probes_;
  const Pairs& pairs_;
  const Grouping& grouping_;
  ranks::Groups racks_;  // of all hosts
  double near_latency_ = 0, uplink_latency_ = 0;
  double near_part_ = 1;  // Pairs::part() within groups
};

}  // namespace

absl::StatusOr<ProbedTree> tree_of_probes(const topology::Topology& probes, uint32_t workers, uint32_t groups) {
  if (workers > probes.host_count() || workers == 0 || groups > workers) {
    return absl::InvalidArgumentError(absl::StrCat("there are probes of ", probes.host_count(), " hosts, for ", workers,
                                                   " workers",
                                                   groups > 0 ? absl::StrCat(" in ", groups, " groups") : "",
                                                   "; each worker needs a host, and each group a worker"));
  }
  const Pairs pairs(probes);
  ranks::Distances distances(workers);
  for (uint32_t a = 0; a < workers; ++a) {
    for (uint32_t b = 0; b < workers; ++b) {
      if (a != b) distances.at(a, b) = pairs.message_seconds(a, b);
    }
  }
  ProbedTree made;
  Grouping grouping;
  if (groups > 0) {
    GLN_ASSIGN_OR_RETURN(ranks::Groups even, even_groups(distances, groups));
    grouping = grouping_of(std::move(even), workers);
  } else {
    GLN_ASSIGN_OR_RETURN(ranks::SureGroups found, ranks::sure_groups(distances));
    made.unsure = found.unsure;
    grouping = grouping_of(std::move(found.groups), workers);
  }
  GLN_ASSIGN_OR_RETURN(made.topology, Tree(probes, pairs, grouping).make());
  return made;
}

}  // namespace gleaner::strategy
