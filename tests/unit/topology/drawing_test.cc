// Tests that drawings have every node and link, with names escaped, and where the rows are.
#include "common/topology/drawing.h"

#include <gmock/gmock.h>

#include <map>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/topology/builders.h"
#include "tests/unit/topology/value.h"

namespace gleaner::topology {
namespace {

using testing::HasSubstr;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string svg_of(const Topology& topology) {
  const auto drawn = to_svg(topology);
  EXPECT_TRUE(drawn.ok()) << drawn.status();
  return drawn.ok() ? *drawn : "";
}

// Returns the y of each node of a drawing.
std::map<std::string, double> heights(const std::string& svg) {
  std::map<std::string, double> result;
  static const std::regex node(
      R"re(<(?:rect x="[^"]*" y|circle cx="[^"]*" cy)="([^"]*)"[^>]*><title>([^<]*)</title>)re");
  for (auto match = std::sregex_iterator(svg.begin(), svg.end(), node); match != std::sregex_iterator(); ++match) {
    const bool host = match->str()[1] == 'r';
    result[(*match)[2]] = std::stod((*match)[1]) + (host ? 6 : 0);
  }
  return result;
}

TEST(Dot, NodesRanksAndLinks) {
  const std::string text = to_dot(value(racks(2, 2, {.bits_per_second = 25e9})));
  EXPECT_THAT(text, HasSubstr("graph topology {"));
  EXPECT_THAT(text, HasSubstr("{ rank=same; \"host-0\"; \"host-1\"; \"host-2\"; \"host-3\"; }"));
  EXPECT_THAT(text, HasSubstr("{ rank=same; \"rack-0\" [shape=ellipse]; \"rack-1\" [shape=ellipse]; }"));
  EXPECT_THAT(text, HasSubstr("\"host-3\" -- \"rack-1\" [label=\"25 Gbit/s, 1 us\"];"));
  EXPECT_EQ(count_of(text, " -- "), 6u);
}

TEST(Dot, QuotesNamesAndShowsBothDirections) {
  const std::string text = to_dot(value(Topology::make({{"a\"b"}, {"c\\"}}, {}, {{0, 1, 2e9, 1e9, 0}})));
  EXPECT_THAT(text, HasSubstr(R"("a\"b" -- "c\\" [label="2 Gbit/s, back 1 Gbit/s, 0 s"];)"));
}

TEST(Svg, EveryNodeAndLink) {
  for (const auto& made : {star(1, {}), star(128, {}), fat_tree(4, {}), bigraph(4, 8, {}), racks(8, 16, {})}) {
    const Topology topology = value(made);
    const std::string svg = svg_of(topology);
    EXPECT_EQ(count_of(svg, "<path "), topology.links().size());
    EXPECT_EQ(count_of(svg, "<circle "), topology.switches().size());
    EXPECT_EQ(heights(svg).size(), topology.node_count());
    for (uint32_t node = 0; node < topology.node_count(); ++node) {
      EXPECT_THAT(svg, HasSubstr(absl::StrCat(">", topology.name(node), "</text>")));
    }
  }
}

TEST(Svg, TiersAreRows) {
  const auto y = heights(svg_of(value(fat_tree(4, {}))));
  EXPECT_LT(y.at("core-0"), y.at("pod-0-aggregation-0"));
  EXPECT_LT(y.at("pod-0-aggregation-0"), y.at("pod-3-edge-1"));
  EXPECT_LT(y.at("pod-3-edge-1"), y.at("host-7"));
  EXPECT_EQ(y.at("host-0"), y.at("host-15"));
  EXPECT_EQ(y.at("core-0"), y.at("core-3"));
}

TEST(Svg, SidesOfABiGraph) {
  const auto y = heights(svg_of(value(bigraph(2, 4, {}))));
  EXPECT_LT(y.at("host-0"), y.at("upper-0"));
  EXPECT_LT(y.at("upper-1"), y.at("lower-0"));
  EXPECT_LT(y.at("lower-0"), y.at("host-7"));
}

TEST(Svg, EscapesNames) {
  const std::string svg = svg_of(value(Topology::make({{"<a & \"b\">"}}, {}, {})));
  EXPECT_THAT(svg, HasSubstr("&lt;a &amp; &quot;b&quot;&gt;</text>"));
}

TEST(Svg, RefusesWhatNobodyCanRead) {
  const auto hosts = to_svg(value(star(129, {})));
  EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(hosts.status().message()), HasSubstr("129 hosts and 129 links is not readable"));
  EXPECT_FALSE(to_svg(value(bigraph(1, 100, {}))).ok()) << "it has 2600 links";
}

}  // namespace
}  // namespace gleaner::topology
