#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/topology/summary.h"

namespace gleaner::topology {
namespace {

using Range = LinkClass::Range;

std::string range(const Range& range, std::string (*format)(double)) {
  if (range.least == range.most) return format(range.least);
  return absl::StrCat(format(range.least), " .. ", format(range.most));
}

std::string bandwidth(const LinkClass& one) {
  std::string up = range(one.up, format_bits_per_second);
  const std::string down = range(one.down, format_bits_per_second);
  if (up == down) return up;
  return absl::StrCat(up, one.lower == one.upper ? ", " : " up, ", down, one.lower == one.upper ? " back" : " down");
}

std::string kind(const LinkClass& one) {
  const auto end = [](uint32_t tier) { return tier == 0 ? std::string("host") : absl::StrCat("tier ", tier); };
  return absl::StrCat(end(one.lower), " - ", end(one.upper));
}

std::string paths_text(const Farthest& farthest) {
  if (farthest.paths == 1) return "one shortest path";
  if (farthest.paths == UINT64_MAX) return "more than 10^19 shortest paths";
  return absl::StrCat(farthest.paths, " shortest paths");
}

// Returns the least and the most overhead of a host.
Range overheads(const Topology& topology) {
  const auto [least, most] = std::ranges::minmax(topology.hosts(), {}, &Host::overhead_seconds);
  return {least.overhead_seconds, most.overhead_seconds};
}

std::string oversubscription_text(const Topology& topology, const Oversubscription& worst) {
  constexpr double kRounding = 1 + 1e-9;
  if (worst.ratio() <= kRounding) return "none: switches forward to others as fast as their hosts send";
  return absl::StrFormat("%.4g : 1 at %s: its hosts send %s, its links to switches carry %s", worst.ratio(),
                         topology.name(worst.node), format_bits_per_second(worst.host_bits_per_second),
                         format_bits_per_second(worst.uplink_bits_per_second));
}

}  // namespace

std::string to_table(const Topology& topology, const Summary& summary) {
  std::string text = absl::StrCat(counted(topology.host_count(), "host"), ", ",
                                  counted(topology.switches().size(), "switch", "switches"), ", ",
                                  counted(topology.links().size(), "link"), "\n");
  if (const auto& far = summary.farthest) {
    absl::StrAppend(&text, "\nDiameter          ", counted(far->hops, "link"), ", ",
                    format_seconds(far->latency_seconds), " one way: ", topology.name(far->from), " to ",
                    topology.name(far->to), ", ", paths_text(*far), "\n");
  }
  if (summary.oversubscription) {
    absl::StrAppend(&text, "Oversubscription  ", oversubscription_text(topology, *summary.oversubscription), "\n");
  }
  if (const Range of_hosts = overheads(topology); of_hosts.most > 0) {
    absl::StrAppend(&text, "Overhead          ", range(of_hosts, format_seconds),
                    " of a host's processor for each message that it sends or receives\n");
  }
  if (summary.classes.empty()) return text;
  std::vector<std::vector<std::string>> rows = {{"LINKS", "COUNT", "BANDWIDTH", "LATENCY", "FOR EXAMPLE"}};
  for (const LinkClass& one : summary.classes) {
    const Link& link = topology.links()[one.example];
    rows.push_back({kind(one), absl::StrCat(one.count), bandwidth(one), range(one.latency_seconds, format_seconds),
                    absl::StrCat(topology.name(link.a), " - ", topology.name(link.b))});
  }
  return absl::StrCat(text, "\n", align(rows, "lrrrl"));
}

}  // namespace gleaner::topology
