#include "common/api/topology.h"

#include <algorithm>

#include "common/api/fields.h"
#include "common/api/text.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

constexpr size_t kMaxGroups = 8192, kMaxNodes = 8192;  // of a Topology, and of a group, by the schema
constexpr std::pair<absl::string_view, UplinkSource> kUplinkSources[] = {
    {"Assumed", UplinkSource::kAssumed}, {"Stated", UplinkSource::kStated}, {"Probes", UplinkSource::kProbes}};

void read_uplink(const Fields& fields, StatedUplink& uplink) {
  fields.text("level", uplink.level);
  fields.text("group", uplink.group);
  fields.bandwidth("bandwidth", uplink.bits_per_second);
}

json to_json(const StatedUplink& uplink) {
  json object = {{"level", uplink.level}};
  if (uplink.bits_per_second >= 1) object["bandwidth"] = bandwidth_text(uplink.bits_per_second);
  if (!uplink.group.empty()) object["group"] = uplink.group;
  return object;
}

void read_topology_group(const Fields& fields, TopologyGroup& group) {
  fields.text("name", group.name);
  fields.text("level", group.level);
  fields.text("parent", group.parent);
  fields.texts("nodes", group.nodes);
  fields.number("nodeCount", group.node_count);
  fields.whole("uplinkBitsPerSecond", group.uplink_bits_per_second);
  fields.choice<UplinkSource>("uplinkSource", kUplinkSources, group.uplink_source);
  fields.nanos("latencyNanoseconds", group.latency_seconds);
}

// Adds a latency to the object, if it is known.
void write_latency(double seconds, json& object) {
  const int64_t nanoseconds = whole_number(seconds * 1e9);
  if (nanoseconds == 0) return;
  object["latencyNanoseconds"] = nanoseconds;
  object["latency"] = format_seconds(seconds);
}

json to_json(const TopologyGroup& group) {
  json object = {{"name", required_text(group.name, kMaxGroup)},
                 {"level", required_text(group.level, kMaxLabelKey)},
                 {"nodeCount", group.node_count},
                 {"uplinkSource", std::string(name_of(group.uplink_source))}};
  if (!group.parent.empty()) object["parent"] = shortened(group.parent, kMaxGroup);
  for (size_t i = 0; i < std::min(group.nodes.size(), kMaxNodes); ++i) {
    object["nodes"].push_back(shortened(group.nodes[i], kMaxName));
  }
  if (group.uplink_bits_per_second >= 1) {
    object["uplinkBitsPerSecond"] = whole_number(group.uplink_bits_per_second);
    object["uplink"] = format_bits_per_second(group.uplink_bits_per_second);
  }
  write_latency(group.latency_seconds, object);
  return object;
}

}  // namespace

absl::string_view name_of(UplinkSource source) { return name_in<UplinkSource>(kUplinkSources, source); }

absl::StatusOr<Topology> parse_topology(const json& object) {
  absl::StatusOr<ObjectMeta> meta = parse_meta(object);
  if (!meta.ok()) return meta.status();
  Topology topology{.meta = *std::move(meta), .uplinks = {}, .status = {}};
  absl::Status status;
  const Fields document(object, "", status);
  document.object("spec").list("uplinks", topology.uplinks, read_uplink);
  const Fields found = document.object("status");
  found.number("nodeCount", topology.status.node_count);
  found.list("groups", topology.status.groups, read_topology_group);
  found.list("conditions", topology.status.conditions, read_condition);
  found.nanos("latencyNanoseconds", topology.status.latency_seconds);
  if (!status.ok()) return status;
  return topology;
}

json to_json(const TopologyStatus& status) {
  json object = {{"nodeCount", status.node_count},
                 {"groupCount", status.groups.size()},
                 {"groups", json::array()},
                 {"conditions", json::array()}};
  for (size_t i = 0; i < std::min(status.groups.size(), kMaxGroups); ++i) {
    object["groups"].push_back(to_json(status.groups[i]));
  }
  for (const Condition& condition : status.conditions) object["conditions"].push_back(to_json(condition));
  write_latency(status.latency_seconds, object);
  return object;
}

json to_json(const Topology& topology) {
  json spec = json::object();
  for (const StatedUplink& uplink : topology.uplinks) spec["uplinks"].push_back(to_json(uplink));
  return {{"apiVersion", kApiVersion},
          {"kind", "Topology"},
          {"metadata", to_json(topology.meta)},
          {"spec", std::move(spec)},
          {"status", to_json(topology.status)}};
}

}  // namespace gleaner::api
