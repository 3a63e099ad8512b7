// Tests the topology that probes suggest, and the message of each mistake in a file of probes.
#include "common/topology/probes.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "common/topology/builders.h"
#include "common/topology/json.h"
#include "common/topology/latency.h"
#include "common/topology/paths.h"
#include "tests/unit/topology/errors.h"
#include "tests/unit/topology/same.h"

namespace gleaner::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kProbesFile[] = R"({"hosts": ["a", "b", "c"],
  "latency_us": [[5, 10, 20.5], [10, null, 30], [20.5, 30, 0]],
  "bandwidth": [[0, 1e9, 2e9], [1e9, -3, "4Gbit"], [2e9, 4e9, "x"]]})";

// The file with the overheads of its hosts.
std::string with_overheads(absl::string_view list) {
  return with_replaced(kProbesFile, "\"hosts\"", absl::StrCat("\"overhead_us\": ", list, ", \"hosts\""));
}

std::string probes_error(absl::string_view text) { return error_of(parse_probes(text)); }

std::string probes_error_with(const std::string& part, absl::string_view replacement) {
  return probes_error(with_replaced(kProbesFile, part, replacement));
}

TEST(Probes, ReadsMatrices) {
  const auto probes = parse_probes(kProbesFile);
  ASSERT_TRUE(probes.ok()) << probes.status();
  EXPECT_THAT(probes->names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(probes->latency(0, 2), 20.5e-6);
  EXPECT_EQ(probes->latency(2, 1), 30e-6);
  EXPECT_EQ(probes->bandwidth(1, 2), 4e9);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(probes->latency(i, i), 0) << "the diagonal does not count";
    EXPECT_EQ(probes->bandwidth(i, i), 0);
  }
}

TEST(Probes, FileIsReadBack) {
  const Probes probes = *parse_probes(kProbesFile);
  const auto again = parse_probes(to_json(probes));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->names, probes.names);
  EXPECT_EQ(again->latency_seconds, probes.latency_seconds);
  EXPECT_EQ(again->bits_per_second, probes.bits_per_second);
}

TEST(Probes, OverheadsAreThoseOfHosts) {
  EXPECT_THAT(parse_probes(kProbesFile)->overhead_seconds, IsEmpty());
  const auto probes = parse_probes(with_overheads("[4.5, 0, 7]"));
  ASSERT_TRUE(probes.ok()) << probes.status();
  EXPECT_THAT(probes->overhead_seconds, ElementsAre(4.5e-6, 0, 7e-6));
  EXPECT_EQ(parse_probes(to_json(*probes))->overhead_seconds, probes->overhead_seconds);
  const Topology made = *topology_of(*probes);
  EXPECT_TRUE(is_of_probes(made));
  for (uint32_t host = 0; host < 3; ++host) {
    EXPECT_EQ(made.hosts()[host].overhead_seconds, probes->overhead_seconds[host]);
  }
}

TEST(Probes, Overheads) {
  EXPECT_THAT(probes_error(with_overheads("7")), HasSubstr("\"overhead_us\" is 7; give a list of numbers"));
  EXPECT_THAT(probes_error(with_overheads("[1, 2]")),
              HasSubstr("\"overhead_us\" has 2 entries; give 3, one for each host"));
  for (const char* bad : {"-1", "null", "\"1us\""}) {
    EXPECT_THAT(probes_error(with_overheads(absl::StrCat("[1, ", bad, ", 2]"))), HasSubstr("overhead_us[1] is "))
        << bad;
  }
}

TEST(Probes, TopologyTellsWhereItComesFrom) {
  const Topology made = *topology_of(*parse_probes(kProbesFile));
  EXPECT_TRUE(is_of_probes(made));
  EXPECT_TRUE(is_of_probes(*parse_topology(to_json(made))));
  EXPECT_FALSE(is_of_probes(*star(3, {})));
  EXPECT_FALSE(
      is_of_probes(*topology_of(*parse_probes(R"({"hosts": ["a"], "latency_us": [[0]], "bandwidth": [[0]]})"))));
  std::vector<Link> links = made.links();
  std::swap(links[3], links[4]);
  EXPECT_FALSE(is_of_probes(*Topology::make(made.hosts(), made.switches(), links)));
  links = made.links();
  links[0].b = 4;
  EXPECT_FALSE(is_of_probes(*Topology::make(made.hosts(), made.switches(), links)));
}

TEST(Probes, TopologyHasAPathOfEachPair) {
  const auto probes = parse_probes(kProbesFile);
  ASSERT_TRUE(probes.ok()) << probes.status();
  const auto topology = topology_of(*probes);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->host_count(), 3u);
  ASSERT_EQ(topology->switches().size(), 3u);
  EXPECT_EQ(topology->switches()[1].name, "port-of-b");
  const Paths paths(*topology);
  for (uint32_t from = 0; from < 3; ++from) {
    for (uint32_t to = 0; to < 3; ++to) {
      if (from == to) continue;
      EXPECT_TRUE(paths.is_unique(from, to));
      std::vector<uint32_t> channels;
      paths.append_path(from, to, 7, channels);
      ASSERT_EQ(channels.size(), 3u);
      EXPECT_EQ(topology->bits_per_second(channels[1]), probes->bandwidth(from, to));
      double latency = 0;
      for (const uint32_t channel : channels) latency += topology->latency_seconds(channel);
      EXPECT_EQ(latency, probes->latency(from, to));
      const double nic = std::max(probes->bandwidth(from, (from + 1) % 3), probes->bandwidth(from, (from + 2) % 3));
      EXPECT_EQ(topology->bits_per_second(channels[0]), nic) << "the largest of the row";
    }
  }
  const auto parsed = parse_topology(kProbesFile);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  expect_same(*topology, *parsed);
}

TEST(Probes, OneHost) {
  const auto made = parse_topology(R"({"hosts": ["a"], "latency_us": [[0]], "bandwidth": [[0]]})");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->host_count(), 1u);
  EXPECT_TRUE(made->links().empty());
}

TEST(Probes, Fields) {
  EXPECT_THAT(probes_error("7"), HasSubstr("the file with probes is 7"));
  EXPECT_THAT(probes_error_with("\"hosts\"", "\"host\""), HasSubstr("no field \"hosts\""));
  EXPECT_THAT(probes_error_with("\"latency_us\"", "\"latency\""), HasSubstr("no field \"latency_us\""));
  EXPECT_THAT(probes_error_with("\"bandwidth\"", "\"bw\""), HasSubstr("no field \"bandwidth\""));
  EXPECT_THAT(probes_error_with("\"hosts\"", "\"x\": 0, \"hosts\""), HasSubstr("unknown field 'x'"));
  EXPECT_THAT(probes_error_with("[\"a\", \"b\", \"c\"]", "[]"), HasSubstr("\"hosts\" is empty"));
  EXPECT_THAT(probes_error_with("[\"a\", \"b\", \"c\"]", "3"), HasSubstr("\"hosts\" is 3; give a list of names"));
  EXPECT_THAT(probes_error_with("\"b\"", "{\"name\": \"b\"}"), HasSubstr("hosts[1] is an object; give a name"));
}

TEST(Probes, Sizes) {
  EXPECT_THAT(probes_error_with("[\"a\", \"b\", \"c\"]", "[\"a\", \"b\"]"),
              HasSubstr("\"latency_us\" has 3 entries; give 2, one for each host"));
  EXPECT_THAT(probes_error_with("[10, null, 30]", "[10, null]"), HasSubstr("latency_us[1] has 2 entries; give 3"));
  EXPECT_THAT(probes_error_with(", [2e9, 4e9, \"x\"]", ""), HasSubstr("\"bandwidth\" has 2 entries; give 3"));
  EXPECT_THAT(probes_error_with("[10, null, 30]", "10"), HasSubstr("latency_us[1] is 10; give a list"));
  std::string names;
  for (int i = 0; i < 4096; ++i) absl::StrAppend(&names, i == 0 ? "" : ", ", "\"h", i, "\"");
  EXPECT_THAT(probes_error_with("\"a\", \"b\", \"c\"", names), HasSubstr("give 4095 hosts or fewer"));
}

TEST(Probes, Entries) {
  for (const char* bad : {"-1", "null", "\"1us\"", "[]"}) {
    EXPECT_THAT(probes_error_with("20.5", bad), HasSubstr("latency_us[0][2] is ")) << bad;
  }
  for (const char* bad : {"0", "-1", "null", "\"fast\"", "{}"}) {
    EXPECT_THAT(probes_error_with("\"4Gbit\"", bad), HasSubstr("bandwidth[1][2] is ")) << bad;
  }
  EXPECT_THAT(probes_error_with("20.5", "NaN"), HasSubstr("NaN and Infinity are no numbers of JSON"));
}

TEST(Probes, Asymmetry) {
  EXPECT_THAT(probes_error_with("[10, null, 30]", "[11, null, 30]"),
              HasSubstr("latency_us[0][1] is 10, but latency_us[1][0] is 11; both stand for one link, so give both "
                        "entries their mean"));
  EXPECT_THAT(probes_error_with("\"4Gbit\"", "\"5Gbit\""),
              HasSubstr("bandwidth[1][2] is \"5Gbit\", but bandwidth[2][1] is 4000000000.0"));
}

TEST(Probes, NamesOfHosts) {
  const auto twice = parse_topology(with_replaced(kProbesFile, "\"b\"", "\"a\""));
  EXPECT_THAT(std::string(twice.status().message()), HasSubstr("'a' occurs twice"));
  const auto port = parse_topology(with_replaced(kProbesFile, "\"b\"", "\"port-of-a\""));
  EXPECT_THAT(std::string(port.status().message()), HasSubstr("'port-of-a' occurs twice"));
}

TEST(Latency, GreaterDirectionCounts) {
  std::vector<double> matrix = {0, 5, 0, 7, 0, 1, 3, 2, 0};
  take_greater_direction(matrix, 3);
  EXPECT_THAT(matrix, ElementsAre(0, 7, 3, 7, 0, 2, 3, 2, 0));
}

}  // namespace
}  // namespace gleaner::topology
