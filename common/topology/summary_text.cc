#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"
#include "common/topology/summary.h"

namespace gleaner::topology {
namespace {

using Row = std::array<std::string, 5>;

// Pads each column to its widest cell. The first and last columns are aligned to the left, the others to the right.
std::string align(const std::vector<Row>& rows) {
  std::array<size_t, std::tuple_size_v<Row>> width{};
  for (const Row& row : rows) {
    for (size_t column = 0; column < row.size(); ++column) width[column] = std::max(width[column], row[column].size());
  }
  std::string text;
  for (const Row& row : rows) {
    absl::StrAppendFormat(&text, "%-*s", static_cast<int>(width[0]), row[0]);
    for (size_t column = 1; column + 1 < row.size(); ++column) {
      absl::StrAppendFormat(&text, "  %*s", static_cast<int>(width[column]), row[column]);
    }
    absl::StrAppend(&text, "  ", row.back(), "\n");
  }
  return text;
}

std::string counted(size_t count, absl::string_view one, absl::string_view several) {
  return absl::StrCat(count, " ", count == 1 ? one : several);
}

std::string range(const LinkClass::Range& range, std::string (*format)(double)) {
  if (range.least == range.most) return format(range.least);
  return absl::StrCat(format(range.least), " .. ", format(range.most));
}

std::string bandwidth(const LinkClass& one) {
  const std::string up = range(one.up, format_bits_per_second), down = range(one.down, format_bits_per_second);
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

std::string oversubscription_text(const Topology& topology, const Oversubscription& worst) {
  constexpr double kRounding = 1 + 1e-9;
  if (worst.ratio() <= kRounding) return "none: switches forward to others as fast as their hosts send";
  return absl::StrFormat("%.4g : 1 at %s: its hosts send %s, its links to switches carry %s", worst.ratio(),
                         topology.name(worst.node), format_bits_per_second(worst.host_bits_per_second),
                         format_bits_per_second(worst.uplink_bits_per_second));
}

}  // namespace

std::string to_table(const Topology& topology, const Summary& summary) {
  std::string text = absl::StrCat(counted(topology.host_count(), "host", "hosts"), ", ",
                                  counted(topology.switches().size(), "switch", "switches"), ", ",
                                  counted(topology.links().size(), "link", "links"), "\n");
  if (const auto& far = summary.farthest) {
    absl::StrAppend(&text, "\nDiameter          ", counted(far->hops, "link", "links"), ", ",
                    format_seconds(far->latency_seconds), " one way: ", topology.name(far->from), " to ",
                    topology.name(far->to), ", ", paths_text(*far), "\n");
  }
  if (summary.oversubscription) {
    absl::StrAppend(&text, "Oversubscription  ", oversubscription_text(topology, *summary.oversubscription), "\n");
  }
  if (summary.classes.empty()) return text;
  std::vector<Row> rows = {{"LINKS", "COUNT", "BANDWIDTH", "LATENCY", "FOR EXAMPLE"}};
  for (const LinkClass& one : summary.classes) {
    const Link& link = topology.links()[one.example];
    rows.push_back({kind(one), absl::StrCat(one.count), bandwidth(one), range(one.latency_seconds, format_seconds),
                    absl::StrCat(topology.name(link.a), " - ", topology.name(link.b))});
  }
  return absl::StrCat(text, "\n", align(rows));
}

}  // namespace gleaner::topology
