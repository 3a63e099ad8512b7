#include "cli/cluster/topology_view.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/cluster/table.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/fabric/fabric.h"
#include "common/fabric/group_value.h"

namespace gleaner::cli {
namespace {

using api::TopologyGroup;

// The speeds of some nodes' links.
struct Speeds {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  uint32_t known = 0;  // nodes

  void add(double bits_per_second) {
    least = std::min(least, bits_per_second);
    most = std::max(most, bits_per_second);
    ++known;
  }
};

std::string speeds_text(const Speeds& speeds, uint32_t nodes) {
  if (speeds.known == 0) return "unknown";
  std::string text = format_bits_per_second(speeds.least);
  if (speeds.most > speeds.least) absl::StrAppend(&text, " .. ", format_bits_per_second(speeds.most));
  if (speeds.known < nodes) absl::StrAppend(&text, ", ", nodes - speeds.known, " unknown");
  return text;
}

std::string uplink_text(const TopologyGroup& group) {
  if (group.uplink_bits_per_second <= 0) return "assumed to carry all";
  return absl::StrCat(format_bits_per_second(group.uplink_bits_per_second), ", ",
                      absl::AsciiStrToLower(name_of(group.uplink_source)));
}

std::string latency_text(double seconds) { return seconds > 0 ? format_seconds(seconds) : "unknown"; }

// Returns the group's name without that of its parent.
absl::string_view own_name(const TopologyGroup& group) {
  absl::string_view name = group.name;
  if (!group.parent.empty()) absl::ConsumePrefix(&name, absl::StrCat(group.parent, "/"));
  return name;
}

// Returns the label's key without its domain: "rack" of "topology.kubernetes.io/rack".
absl::string_view short_label(absl::string_view key) { return key.substr(key.rfind('/') + 1); }

// The speeds of links, by group with those of its smaller groups, of the nodes in no group, and of all nodes.
struct FoundSpeeds {
  std::vector<Speeds> of_group;
  Speeds of_rest, of_all;
};

FoundSpeeds find_speeds(const fabric::Fabric& fabric, const std::vector<api::NodeProfile>& profiles) {
  FoundSpeeds found{std::vector<Speeds>(fabric.groups().size()), {}, {}};
  for (const api::NodeProfile& profile : profiles) {
    const double bits = profile.status.bits_per_second;
    if (bits <= 0) continue;
    found.of_all.add(bits);
    std::optional<uint32_t> group = fabric.group_of(profile.meta.name);
    if (!group.has_value()) found.of_rest.add(bits);
    for (; group.has_value(); group = fabric.parent_of(*group)) found.of_group[*group].add(bits);
  }
  return found;
}

std::string groups_table(const api::TopologyStatus& status, const std::vector<api::NodeProfile>& profiles) {
  const fabric::Fabric fabric = fabric::Fabric::of_status(status);
  const FoundSpeeds speeds = find_speeds(fabric, profiles);
  std::vector<std::vector<std::string>> rows = {{"GROUP", "LEVEL", "NODES", "LINK OF A NODE", "LATENCY", "UPLINK"}};
  rows.push_back({"all nodes", "-", absl::StrCat(status.node_count), speeds_text(speeds.of_all, status.node_count),
                  latency_text(status.latency_seconds), "-"});
  std::vector<size_t> depth;
  uint32_t rest = status.node_count;
  for (uint32_t i = 0; i < status.groups.size(); ++i) {
    const TopologyGroup& group = status.groups[i];
    const std::optional<uint32_t> parent = fabric.parent_of(i);
    depth.push_back(parent.has_value() ? depth[*parent] + 1 : 1);
    if (!parent.has_value()) rest -= std::min(rest, group.node_count);
    rows.push_back({absl::StrCat(std::string(2 * depth.back(), ' '), own_name(group)),
                    std::string(short_label(group.level)), absl::StrCat(group.node_count),
                    speeds_text(speeds.of_group[i], group.node_count), latency_text(group.latency_seconds),
                    uplink_text(group)});
  }
  if (rest > 0 && !status.groups.empty()) {
    rows.push_back({"  in no group", "-", absl::StrCat(rest), speeds_text(speeds.of_rest, rest), "-", "-"});
  }
  return table(rows);
}

// Returns a command that states uplinks, with an example for a group whose uplink is assumed, or else for any group.
std::string advice_on_uplinks(const std::vector<TopologyGroup>& groups) {
  std::string text = "To state uplinks, run `kubectl edit topologies.gleaner.dev cluster`";
  if (groups.empty()) return text + ".\n";
  const auto assumed = std::ranges::find(groups, api::UplinkSource::kAssumed, &TopologyGroup::uplink_source);
  const TopologyGroup& group = assumed == groups.end() ? groups.front() : *assumed;
  return absl::StrCat(text, " and write, for example:\n\n  spec:\n    uplinks:\n    - level: ", group.level,
                      "\n      group: \"", fabric::group_value(group), "\"\n      bandwidth: 100Gbit\n");
}

std::string advice_on(const api::Condition& condition, const std::vector<TopologyGroup>& groups) {
  if (condition.type == "UplinksKnown") return advice_on_uplinks(groups);
  if (condition.type != "Ready") return "";
  return "To tell nodes apart, run `kubectl label node NODE topology.kubernetes.io/rack=RACK` for the nodes of each "
         "rack.\n";
}

std::string sentence_of(const api::Condition& condition) {
  return absl::StrCat(condition.type, " is False, since ", condition.message);
}

}  // namespace

std::vector<std::string> unmet_conditions(const api::Topology& topology) {
  std::vector<std::string> sentences;
  for (const api::Condition& condition : topology.status.conditions) {
    if (!condition.status) sentences.push_back(sentence_of(condition));
  }
  return sentences;
}

std::string topology_text(const api::Topology& topology,
                          const absl::StatusOr<std::vector<api::NodeProfile>>& profiles) {
  const api::TopologyStatus& status = topology.status;
  std::string text = groups_table(status, profiles.ok() ? *profiles : std::vector<api::NodeProfile>());
  if (!profiles.ok()) {
    absl::StrAppend(&text,
                    "\nThe links of nodes are unknown, since NodeProfiles can't be read: ", profiles.status().message(),
                    ".\n");
  }
  for (const api::Condition& condition : status.conditions) {
    if (condition.status) continue;
    absl::StrAppend(&text, "\n", sentence_of(condition), ".\n", advice_on(condition, status.groups));
  }
  return text;
}

}  // namespace gleaner::cli
