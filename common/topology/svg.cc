#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/topology/drawing.h"
#include "common/topology/tiers.h"

namespace gleaner::topology {
namespace {

constexpr double kHostWidth = 20, kSwitchWidth = 26;  // the least distance between two nodes of a row
constexpr double kRowHeight = 130, kMargin = 30;
constexpr double kHighestCurve = 100;  // above the row whose nodes it joins
// Hosts' labels are vertical, as names are longer than hosts are wide. Switches' labels are slanted, so that they hide
// no link.
constexpr double kLetter = 7, kSlant = 35;  // pixels, degrees

struct Point {
  double x = 0, y = 0;
};

// A row of the drawing.
struct Row {
  std::vector<uint32_t> nodes;  // from left to right
  bool of_hosts = false;
};

// Returns the rows from the bottom to the top. Each row's nodes are in the order of their indexes.
std::vector<Row> rows_of(const Topology& topology) {
  const std::vector<uint32_t> tier = tiers(topology), side = sides(topology);
  std::vector<Row> rows(side.empty() ? *std::max_element(tier.begin(), tier.end()) + 1 : 4);
  for (uint32_t node = 0; node < topology.node_count(); ++node) {
    uint32_t row = tier[node];
    if (!side.empty() && side[node] == 0) row = 3 - row;
    rows[row].nodes.push_back(node);
  }
  for (Row& row : rows) row.of_hosts = topology.is_host(row.nodes[0]);
  return rows;
}

// Sorts the nodes of a row by the mean position of their neighbours that have one, so that fewer links cross.
void sort_by_neighbours(const Topology& topology, const std::vector<double>& position, std::vector<uint32_t>& nodes) {
  std::vector<double> mean(topology.node_count(), 0);
  for (const uint32_t node : nodes) {
    double sum = 0, count = 0;
    for (const Topology::Neighbour& next : topology.neighbours(node)) {
      if (position[next.node] < 0) continue;
      sum += position[next.node];
      ++count;
    }
    mean[node] = count == 0 ? 0 : sum / count;
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](uint32_t a, uint32_t b) { return mean[a] < mean[b]; });
}

// Orders the nodes of all rows: hosts beside those at the same switch, then each row by the row below it.
void arrange(const Topology& topology, std::vector<Row>& rows) {
  std::vector<uint32_t> first(topology.node_count(), UINT32_MAX);  // by switch: its first host
  const auto group = [&](uint32_t host) {
    const auto only = topology.only_switch(host);
    return only ? first[only->node] : host;
  };
  for (uint32_t host = topology.host_count(); host-- > 0;) {
    if (const auto only = topology.only_switch(host)) first[only->node] = host;
  }
  const bool two_sides = rows.size() == 4 && rows[3].of_hosts;
  for (Row& row : rows) {
    if (!row.of_hosts) continue;
    std::stable_sort(row.nodes.begin(), row.nodes.end(), [&](uint32_t a, uint32_t b) { return group(a) < group(b); });
  }
  std::vector<double> position(topology.node_count(), -1);
  const auto place = [&](const Row& row) {
    for (size_t i = 0; i < row.nodes.size(); ++i) {
      position[row.nodes[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(row.nodes.size());
    }
  };
  place(rows[0]);
  if (two_sides) place(rows[3]);
  for (size_t i = 1; i < rows.size() - (two_sides ? 1 : 0); ++i) {
    // A switch of two sides is beside its own hosts, and not beside the other side's switches.
    std::vector<double> hosts_only(position);
    if (two_sides) std::fill(hosts_only.begin() + topology.host_count(), hosts_only.end(), -1);
    sort_by_neighbours(topology, two_sides ? hosts_only : position, rows[i].nodes);
    place(rows[i]);
  }
}

std::string escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string link_text(const Topology& topology, const Link& link) {
  const std::string there = format_bits_per_second(link.bits_per_second);
  const std::string back = format_bits_per_second(link.back_bits_per_second);
  return absl::StrCat(topology.name(link.a), " - ", topology.name(link.b), ": ", there,
                      there == back ? "" : absl::StrCat(", back ", back), ", ", format_seconds(link.latency_seconds));
}

// Appends a line, or a curve between two nodes of the same row.
void append_link(std::string& text, const Topology& topology, const Link& link, Point a, Point b, double slowest) {
  const double width = std::min(1 + std::log2(std::max(link.bits_per_second, slowest) / slowest) / 2, 4.);
  const double rise = a.y == b.y ? std::min(10 + std::abs(a.x - b.x) / 12, kHighestCurve) : 0;
  absl::StrAppendFormat(
      &text, "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\" stroke-width=\"%.2g\"><title>%s</title></path>\n", a.x, a.y,
      (a.x + b.x) / 2, (a.y + b.y) / 2 - 2 * rise, b.x, b.y, width, escaped(link_text(topology, link)));
}

void append_label(std::string& text, Point at, double angle, absl::string_view anchor, absl::string_view name) {
  absl::StrAppendFormat(
      &text, "<text transform=\"translate(%.1f %.1f) rotate(%.0f)\" text-anchor=\"%s\" stroke=\"white\">%s</text>\n",
      at.x, at.y, angle, anchor, name);
}

// `label_above`: a host's label is above the host.
void append_node(std::string& text, const Topology& topology, uint32_t node, Point at, bool label_above) {
  constexpr absl::string_view kStyle = "stroke=\"#333\" stroke-width=\"1\"";
  const std::string name = escaped(topology.name(node));
  if (topology.is_host(node)) {
    absl::StrAppendFormat(&text,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"#cfe3f7\" %s><title>%s</title>"
                          "</rect>\n",
                          at.x - 6, at.y - 6, kStyle, name);
    const Point label = {at.x + 4, label_above ? at.y - 12 : at.y + 12};
    append_label(text, label, -90, label_above ? "start" : "end", name);
  } else {
    absl::StrAppendFormat(&text,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"7\" fill=\"#f9d99a\" %s><title>%s</title></circle>\n",
                          at.x, at.y, kStyle, name);
    append_label(text, {at.x + 8, at.y - 5}, -kSlant, "start", name);
  }
}

// Returns the length of the longest label of a row.
double label_length(const Topology& topology, const Row& row) {
  size_t longest = 0;
  for (const uint32_t node : row.nodes) longest = std::max(longest, topology.name(node).size());
  return 12 + kLetter * static_cast<double>(longest);
}

// Returns the space for labels and curves above the uppermost row.
double space_above(const Topology& topology, const Row& row) {
  const double label = row.of_hosts ? 0 : label_length(topology, row) * std::sin(kSlant * std::numbers::pi / 180);
  std::vector<bool> here(topology.node_count(), false);
  for (const uint32_t node : row.nodes) here[node] = true;
  const auto is_curve = [&](const Link& link) { return here[link.a] && here[link.b]; };
  const bool curves = std::any_of(topology.links().begin(), topology.links().end(), is_curve);
  return std::max(label, curves ? kHighestCurve : 0);
}

// Returns the space right of the nodes, for the labels of switches.
double space_right(const Topology& topology, const std::vector<Row>& rows) {
  double space = 0;
  for (const Row& row : rows) {
    if (!row.of_hosts) space = std::max(space, label_length(topology, row) * std::cos(kSlant * std::numbers::pi / 180));
  }
  return space;
}

}  // namespace

absl::StatusOr<std::string> to_svg(const Topology& topology) {
  if (topology.host_count() > kMaxDrawnHosts || topology.links().size() > kMaxDrawnLinks) {
    return absl::InvalidArgumentError(absl::StrCat("a drawing of ", topology.host_count(), " hosts and ",
                                                   topology.links().size(), " links is not readable (at most ",
                                                   kMaxDrawnHosts, " and ", kMaxDrawnLinks,
                                                   "); take json or dot, which have all of them"));
  }
  std::vector<Row> rows = rows_of(topology);
  arrange(topology, rows);
  double inner = 0;
  for (const Row& row : rows) {
    const double each = row.of_hosts ? kHostWidth : kSwitchWidth;
    inner = std::max(inner, each * static_cast<double>(row.nodes.size()));
  }
  const bool hosts_at_top = rows.size() > 1 && rows.back().of_hosts;
  const double top =
      kMargin + (hosts_at_top ? label_length(topology, rows.back()) : space_above(topology, rows.back()));
  const double height =
      top + kRowHeight * static_cast<double>(rows.size() - 1) + label_length(topology, rows[0]) + kMargin;
  std::vector<Point> points(topology.node_count());
  for (size_t row = 0; row < rows.size(); ++row) {
    const double each = inner / static_cast<double>(rows[row].nodes.size());
    for (size_t i = 0; i < rows[row].nodes.size(); ++i) {
      points[rows[row].nodes[i]] = {kMargin + each * (static_cast<double>(i) + 0.5),
                                    top + kRowHeight * static_cast<double>(rows.size() - 1 - row)};
    }
  }
  double slowest = INFINITY;
  for (const Link& link : topology.links()) slowest = std::min(slowest, link.bits_per_second);
  std::string text = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<g fill=\"none\" "
      "stroke=\"#7a8a99\">\n",
      inner + 2 * kMargin + space_right(topology, rows), height);
  for (const Link& link : topology.links()) {
    append_link(text, topology, link, points[link.a], points[link.b], slowest);
  }
  text += "</g>\n<g stroke-width=\"3\" paint-order=\"stroke\">\n";  // a white rim keeps labels legible above links
  for (const Row& row : rows) {
    for (const uint32_t node : row.nodes) append_node(text, topology, node, points[node], &row != &rows[0]);
  }
  return text + "</g>\n</svg>\n";
}

}  // namespace gleaner::topology
