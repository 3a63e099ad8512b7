#include "common/fabric/near_nodes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/median.h"
#include "common/ranks/near_groups.h"

namespace gleaner::fabric {
namespace {

constexpr char kNear[] = "near-";         // begins the name of a group
constexpr size_t kFewestNodes = 4;        // of a set with groups: two of two nodes
constexpr size_t kPeersOfNode = 64;       // whose latencies an agent measures (docs/agent.md#latencies)
constexpr size_t kFewestLatencies = 3;    // between a node and a set, to tell how near they are
constexpr double kNearerElsewhere = 1.5;  // a node is mislabelled if its own set is farther by this factor ...
constexpr double kFitsElsewhere = 1.25;   // ... and the other set's nodes are nearly as far from each other

using Set = std::vector<uint32_t>;  // places of nodes

// Measured nodes, by whether they have a third of the latencies that their agents are to measure.
struct ByLatencies {
  std::vector<std::string> many, few;
};

ByLatencies by_latencies(const LatencyPairs& latencies, const std::vector<std::string>& names) {
  std::map<uint32_t, size_t> count;
  for (const ranks::PairDistance& pair : latencies.pairs) {
    ++count[pair.a];
    ++count[pair.b];
  }
  ByLatencies nodes;
  for (const auto& [place, latencies_of_node] : count) {
    const size_t wanted = std::min(latencies.measured.size() - 1, kPeersOfNode);
    (3 * latencies_of_node >= wanted ? nodes.many : nodes.few).push_back(names[place]);
  }
  return nodes;
}

// Returns the groups of places in latencies.measured; nullopt: it is not sure which are right.
std::optional<ranks::Groups> near_groups_of(const LatencyPairs& latencies) {
  const auto hosts = static_cast<uint32_t>(latencies.measured.size());
  const std::vector<ranks::PairDistance> pairs = latencies.among_measured();
  if (!latencies.is_full()) return ranks::linked_groups(hosts, pairs);
  const auto found = ranks::sure_groups(distances_of(hosts, pairs));
  if (!found.ok() || found->unsure) return std::nullopt;
  return found->groups;
}

class Finder {
 public:
  Finder(std::span<const LabelledNode> nodes, const Profiles& profiles, absl::Time now) : nodes_(nodes) {
    std::vector<std::string> names;
    for (uint32_t place = 0; place < nodes.size(); ++place) {
      names.push_back(nodes[place].name);
      sets_[nodes[place].path].push_back(place);
    }
    latencies_ = latency_pairs(names, profiles, now);
    found_.measured = latencies_.measured.size();
    add_names(latencies_.implausible, found_.implausible);
    if (found_.measured == 0) return;
    for (uint32_t place = 0, next = 0; place < nodes.size(); ++place) {
      const bool is_measured = next < latencies_.measured.size() && latencies_.measured[next] == place;
      if (is_measured) ++next;
      if (!is_measured) found_.unmeasured.push_back(names[place]);
    }
    std::ranges::sort(found_.unmeasured);
  }

  // Finds the groups of each set.
  void divide(const Profiles& profiles, const absl::flat_hash_map<std::string, std::string>& before, absl::Time now) {
    for (const auto& [path, set] : sets_) {
      std::vector<std::string> names;
      for (const uint32_t place : set) names.push_back(nodes_[place].name);
      if (names.size() < kFewestNodes) continue;
      LatencyPairs latencies = sets_.size() == 1 ? latencies_ : latency_pairs(names, profiles, now);
      const auto [many, few] = by_latencies(latencies, names);
      if (many.size() < kFewestNodes || 2 * many.size() < names.size()) {
        keep(names, before);
        continue;
      }
      if (!few.empty()) latencies = latency_pairs(many, profiles, now);
      const std::optional<ranks::Groups> groups = near_groups_of(latencies);
      if (!groups.has_value()) {
        found_.unsure.insert(found_.unsure.end(), names.begin(), names.end());
        keep(names, before);
      } else if (groups->size() > 1) {
        add_groups(*groups, latencies, few.empty() ? names : many, before);
        keep(few, before);
      }
    }
    std::ranges::sort(found_.unsure);
  }

  // Finds the nodes whose latencies contradict their labels.
  void compare_labels() {
    if (sets_.size() < 2) return;
    std::vector<uint32_t> set_of(nodes_.size());
    std::vector<double> within;  // by set: the usual latency between its nodes
    for (const auto& [path, set] : sets_) {
      for (const uint32_t place : set) set_of[place] = static_cast<uint32_t>(within.size());
      within.push_back(0);
    }
    std::vector<std::vector<double>> inside(within.size());
    std::vector<std::map<uint32_t, std::vector<double>>> to(nodes_.size());  // by node, then set
    for (const ranks::PairDistance& pair : latencies_.pairs) {
      to[pair.a][set_of[pair.b]].push_back(pair.distance);
      to[pair.b][set_of[pair.a]].push_back(pair.distance);
      if (set_of[pair.a] == set_of[pair.b]) inside[set_of[pair.a]].push_back(pair.distance);
    }
    for (size_t set = 0; set < within.size(); ++set) within[set] = upper_median(std::move(inside[set]));
    for (uint32_t place = 0; place < nodes_.size(); ++place) {
      const auto own = to[place].find(set_of[place]);
      if (own == to[place].end() || own->second.size() < kFewestLatencies) continue;
      const double usual = upper_median(own->second);
      const bool nearer = std::ranges::any_of(to[place], [&](const auto& entry) {
        if (entry.first == set_of[place] || entry.second.size() < kFewestLatencies) return false;
        const double there = upper_median(entry.second);
        return kNearerElsewhere * there < usual && there < kFitsElsewhere * within[entry.first];
      });
      if (nearer) found_.mislabelled.push_back(nodes_[place].name);
    }
    std::ranges::sort(found_.mislabelled);
  }

  NearNodes found() && { return std::move(found_); }

 private:
  void add_names(const std::vector<uint32_t>& places, std::vector<std::string>& names) const {
    for (const uint32_t place : places) names.push_back(nodes_[place].name);
    std::ranges::sort(names);
  }

  void keep(const std::vector<std::string>& names, const absl::flat_hash_map<std::string, std::string>& before) {
    for (const std::string& name : names) {
      if (const auto group = before.find(name); group != before.end()) found_.group_of.emplace(name, group->second);
    }
  }

  // Adds the groups of a set. A group has the name that most of its nodes had before, unless the node of that name is
  // in another group now.
  void add_groups(const ranks::Groups& groups, const LatencyPairs& latencies, const std::vector<std::string>& names,
                  const absl::flat_hash_map<std::string, std::string>& before) {
    std::vector<std::vector<std::string>> made;
    absl::flat_hash_map<std::string, size_t> place_of;  // in `made`, by node
    for (const std::vector<uint32_t>& group : groups) {
      if (group.size() < 2) continue;
      std::vector<std::string>& members = made.emplace_back();
      for (const uint32_t host : group) members.push_back(names[latencies.measured[host]]);
      for (const std::string& member : members) place_of.emplace(member, made.size() - 1);
    }
    absl::flat_hash_set<std::string> taken;
    for (size_t place = 0; place < made.size(); ++place) {
      std::map<std::string, size_t> had;  // number of nodes by the name of their group of before
      for (const std::string& member : made[place]) {
        if (const auto group = before.find(member); group != before.end()) ++had[group->second];
      }
      std::string name = absl::StrCat(kNear, *std::ranges::min_element(made[place]));
      size_t most = 0;
      for (const auto& [candidate, nodes] : had) {
        const auto namesake = place_of.find(absl::StripPrefix(candidate, kNear));
        const bool is_elsewhere = namesake != place_of.end() && namesake->second != place;
        if (nodes <= most || is_elsewhere || taken.contains(candidate)) continue;
        name = candidate;
        most = nodes;
      }
      for (std::string& member : made[place]) found_.group_of.emplace(std::move(member), name);
      taken.insert(std::move(name));
    }
  }

  const std::span<const LabelledNode> nodes_;
  std::map<placement::LabelPath, Set> sets_;
  LatencyPairs latencies_;  // of all nodes
  NearNodes found_;
};

}  // namespace

NearNodes find_near_nodes(std::span<const LabelledNode> nodes, const Profiles& profiles,
                          const absl::flat_hash_map<std::string, std::string>& before, absl::Time now) {
  Finder finder(nodes, profiles, now);
  finder.divide(profiles, before, now);
  finder.compare_labels();
  return std::move(finder).found();
}

}  // namespace gleaner::fabric
