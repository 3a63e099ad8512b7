#include "common/topology/json.h"

#include <charconv>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/topology/latency.h"
#include "common/topology/probes_json.h"

namespace gleaner::topology {
namespace {

absl::StatusOr<std::vector<uint32_t>> read_place(const Json& value, const std::string& host) {
  const std::string what = absl::StrCat(host, ": \"place\"");
  GLN_ASSIGN_OR_RETURN(const Json::array_t* list, read_list(value, what, "whole numbers"));
  std::vector<uint32_t> place;
  for (const Json& number : *list) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > UINT32_MAX) {
      return absl::InvalidArgumentError(absl::StrCat(what, " has an entry that is no whole number from 0 to ",
                                                     UINT32_MAX, "; give for example [0, 3]"));
    }
    place.push_back(number.get<uint32_t>());
  }
  return place;
}

absl::StatusOr<std::vector<Host>> read_hosts(const Json& value) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* list, read_list(value, "\"hosts\"", "objects with \"name\" and \"place\""));
  std::vector<Host> hosts;
  for (const Json& entry : *list) {
    const std::string what = absl::StrCat("host ", hosts.size());
    const auto where = [&] { return absl::StrCat(what, ": \"name\""); };
    if (!entry.is_string()) GLN_RETURN_IF_ERROR(check_fields(entry, what, {"name"}, {"place", "overhead_us"}));
    Host& host = hosts.emplace_back();
    GLN_ASSIGN_OR_RETURN(host.name, read_name(entry.is_string() ? entry : entry["name"], where));
    if (entry.contains("place")) {
      GLN_ASSIGN_OR_RETURN(host.place, read_place(entry["place"], what));
    }
    if (entry.contains("overhead_us")) {
      const auto field = [&] { return absl::StrCat(what, ": \"overhead_us\""); };
      GLN_ASSIGN_OR_RETURN(host.overhead_seconds, read_latency(entry["overhead_us"], field));
    }
  }
  return hosts;
}

absl::StatusOr<std::vector<Switch>> read_switches(const Json& value) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* list, read_list(value, "\"switches\"", "objects with \"name\""));
  std::vector<Switch> switches;
  for (const Json& entry : *list) {
    const std::string what = absl::StrCat("switch ", switches.size());
    const auto where = [&] { return absl::StrCat(what, ": \"name\""); };
    if (!entry.is_string()) GLN_RETURN_IF_ERROR(check_fields(entry, what, {"name"}));
    GLN_ASSIGN_OR_RETURN(std::string name, read_name(entry.is_string() ? entry : entry["name"], where));
    switches.push_back({std::move(name)});
  }
  return switches;
}

using Indexes = absl::flat_hash_map<absl::string_view, uint32_t>;

absl::StatusOr<uint32_t> read_end(const Json& link, const char* field, const Indexes& indexes, Where where) {
  const Json& value = link[field];
  const auto place = [&] { return absl::StrCat(where(), ": \"", field, "\""); };
  GLN_ASSIGN_OR_RETURN(const std::string name, read_name(value, place));
  const auto found = indexes.find(name);
  if (found != indexes.end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat(place(), " is ", quote(name), ", which is the name of no host and no switch"));
}

absl::StatusOr<std::vector<Link>> read_links(const Json& value, const Indexes& indexes) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* list, read_list(value, "\"links\"", "objects with \"a\" and \"b\""));
  std::vector<Link> links;
  links.reserve(list->size());
  for (const Json& entry : *list) {
    const auto where = [&] { return absl::StrCat("link ", links.size()); };
    const auto field = [&](absl::string_view name) { return absl::StrCat("link ", links.size(), ": \"", name, "\""); };
    GLN_RETURN_IF_ERROR(check_fields(entry, where(), {"a", "b", "bandwidth", "latency_us"}, {"back_bandwidth"}));
    Link link;
    GLN_ASSIGN_OR_RETURN(link.a, read_end(entry, "a", indexes, where));
    GLN_ASSIGN_OR_RETURN(link.b, read_end(entry, "b", indexes, where));
    GLN_ASSIGN_OR_RETURN(link.bits_per_second, read_bandwidth(entry["bandwidth"], [&] { return field("bandwidth"); }));
    link.back_bits_per_second = link.bits_per_second;
    if (entry.contains("back_bandwidth")) {
      GLN_ASSIGN_OR_RETURN(link.back_bits_per_second,
                           read_bandwidth(entry["back_bandwidth"], [&] { return field("back_bandwidth"); }));
    }
    GLN_ASSIGN_OR_RETURN(link.latency_seconds, read_latency(entry["latency_us"], [&] { return field("latency_us"); }));
    links.push_back(link);
  }
  return links;
}

absl::StatusOr<Topology> read_topology(const Json& root) {
  GLN_RETURN_IF_ERROR(check_fields(root, "the topology", {"hosts", "switches", "links"}));
  GLN_ASSIGN_OR_RETURN(std::vector<Host> hosts, read_hosts(root["hosts"]));
  GLN_ASSIGN_OR_RETURN(std::vector<Switch> switches, read_switches(root["switches"]));
  Indexes indexes;
  for (const Host& host : hosts) indexes.emplace(host.name, static_cast<uint32_t>(indexes.size()));
  for (const Switch& node : switches) indexes.emplace(node.name, static_cast<uint32_t>(indexes.size()));
  GLN_ASSIGN_OR_RETURN(std::vector<Link> links, read_links(root["links"], indexes));
  return Topology::make(std::move(hosts), std::move(switches), std::move(links));
}

// Appends the shortest decimal number that is read back as the same double.
void append_number(std::string& text, double value) {
  char digits[400];  // 1e308 and 1e-323 fit
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::fixed).ptr;
  text.append(digits, end);
}

std::string text_of(const std::string& name) { return Json(name).dump(); }

void append_host(std::string& text, const Host& host) {
  absl::StrAppend(&text, "    {\"name\": ", text_of(host.name), ", \"place\": [", absl::StrJoin(host.place, ", "), "]");
  if (host.overhead_seconds > 0) {
    text += ", \"overhead_us\": ";
    append_number(text, microseconds_of_seconds(host.overhead_seconds));
  }
  text += "}";
}

void append_link(std::string& text, const Link& link, const std::vector<std::string>& names) {
  absl::StrAppend(&text, "    {\"a\": ", names[link.a], ", \"b\": ", names[link.b], ", \"bandwidth\": ");
  append_number(text, link.bits_per_second);
  if (link.back_bits_per_second != link.bits_per_second) {
    text += ", \"back_bandwidth\": ";
    append_number(text, link.back_bits_per_second);
  }
  text += ", \"latency_us\": ";
  append_number(text, microseconds_of_seconds(link.latency_seconds));
  text += "}";
}

}  // namespace

absl::StatusOr<Topology> parse_topology(absl::string_view text) {
  GLN_ASSIGN_OR_RETURN(const Json root, parse_json(text));
  if (root.contains("switches") || root.contains("links")) return read_topology(root);
  if (root.contains("latency_us") || root.contains("bandwidth")) {
    GLN_ASSIGN_OR_RETURN(const Probes probes, read_probes(root));
    return topology_of(probes);
  }
  return absl::InvalidArgumentError(
      "expected an object with \"hosts\", \"switches\" and \"links\" (a topology), or with \"hosts\", \"latency_us\" "
      "and "
      "\"bandwidth\" (probes)");
}

std::string to_json(const Topology& topology) {
  std::vector<std::string> names;  // by node, as JSON
  for (uint32_t node = 0; node < topology.node_count(); ++node) names.push_back(text_of(topology.name(node)));
  std::string text;
  text.reserve(64 * names.size() + 128 * topology.links().size());
  text += "{\n  \"hosts\": [";
  absl::string_view separator = "\n";
  for (const Host& host : topology.hosts()) {
    absl::StrAppend(&text, separator);
    append_host(text, host);
    separator = ",\n";
  }
  text += "\n  ],\n  \"switches\": [";
  separator = "\n";
  for (uint32_t node = topology.host_count(); node < topology.node_count(); ++node, separator = ",\n") {
    absl::StrAppend(&text, separator, "    {\"name\": ", names[node], "}");
  }
  text += "\n  ],\n  \"links\": [";
  separator = "\n";
  for (const Link& link : topology.links()) {
    absl::StrAppend(&text, separator);
    append_link(text, link, names);
    separator = ",\n";
  }
  text += "\n  ]\n}\n";
  return text;
}

}  // namespace gleaner::topology
