// Tests that topologies survive their file format, and the message of each mistake in a file.
#include "common/topology/json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/topology/builders.h"
#include "common/topology/latency.h"
#include "tests/unit/topology/errors.h"
#include "tests/unit/topology/same.h"

namespace gleaner::topology {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kTopologyFile[] =
    R"({"hosts": [{"name": "a", "place": [0, 4294967295], "overhead_us": 1.5}, {"name": "b"}, "c"],
  "switches": [{"name": "s"}, "t"],
  "links": [{"a": "a", "b": "s", "bandwidth": "100Gbit", "latency_us": 1.5},
            {"a": "t", "b": "b", "bandwidth": 25e9, "back_bandwidth": "10Gbit", "latency_us": 0},
            {"a": "c", "b": "t", "bandwidth": 1000, "latency_us": 3},
            {"a": "s", "b": "t", "bandwidth": 1, "latency_us": 3}]})";

std::string json_error(absl::string_view text) { return error_of(parse_topology(text)); }

// Returns the error of kTopologyFile with a part replaced.
std::string json_error_with(const std::string& part, absl::string_view replacement) {
  return json_error(with_replaced(kTopologyFile, part, replacement));
}

TEST(Json, ReadsEveryField) {
  const auto made = parse_topology(kTopologyFile);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->host_count(), 3u);
  EXPECT_EQ(made->hosts()[0].name, "a");
  EXPECT_THAT(made->hosts()[0].place, ElementsAre(0, 4294967295u));
  EXPECT_THAT(made->hosts()[1].place, IsEmpty());
  EXPECT_EQ(made->hosts()[0].overhead_seconds, 1.5e-6);
  EXPECT_EQ(made->hosts()[1].overhead_seconds, 0);
  EXPECT_EQ(made->hosts()[2].name, "c");
  ASSERT_EQ(made->switches().size(), 2u);
  EXPECT_EQ(made->switches()[1].name, "t");
  ASSERT_EQ(made->links().size(), 4u);
  const Link& one = made->links()[0];
  EXPECT_EQ(one.a, 0u);
  EXPECT_EQ(one.b, 3u);
  EXPECT_EQ(one.bits_per_second, 100e9);
  EXPECT_EQ(one.back_bits_per_second, 100e9);
  EXPECT_EQ(one.latency_seconds, 1.5e-6);
  const Link& two = made->links()[1];
  EXPECT_EQ(two.a, 4u);
  EXPECT_EQ(two.bits_per_second, 25e9);
  EXPECT_EQ(two.back_bits_per_second, 10e9);
}

void expect_round_trip(const Topology& topology) {
  const std::string text = to_json(topology);
  const auto again = parse_topology(text);
  ASSERT_TRUE(again.ok()) << again.status();
  expect_same(topology, *again);
  EXPECT_EQ(to_json(*again), text);
}

TEST(Json, RoundTripsAreExact) {
  expect_round_trip(*parse_topology(kTopologyFile));
  for (const auto& made : {star(1, {}), fat_tree(4, {.bits_per_second = 25e9 / 3}), bigraph(2, 4, {}),
                           racks(3, 2, {.uplink_bits_per_second = 1e300, .latency_seconds = 0})}) {
    ASSERT_TRUE(made.ok());
    expect_round_trip(*made);
  }
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-12, 12);
  std::vector<Link> links;
  for (int i = 0; i < 2000; ++i) {
    const double us = i % 2 == 0 ? i * 0.05 : std::pow(10, exponent(random));
    links.push_back(
        {0, 1, std::pow(10, exponent(random)), std::pow(10, exponent(random)), seconds_of_microseconds(us)});
  }
  const auto made = Topology::make({{"\"quoted\" \\ name", {3}}, {"ünï", {}}}, {}, links);
  ASSERT_TRUE(made.ok()) << made.status();
  expect_round_trip(*made);
}

TEST(Json, WritesPlainNumbers) {
  const auto made = racks(1, 1, {.bits_per_second = 100e9, .uplink_bits_per_second = 2.5, .latency_seconds = 0.3e-6});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(to_json(*made),
            "{\n  \"hosts\": [\n    {\"name\": \"host-0\", \"place\": [0, 0]}\n  ],\n"
            "  \"switches\": [\n    {\"name\": \"core\"},\n    {\"name\": \"rack-0\"}\n  ],\n  \"links\": [\n"
            "    {\"a\": \"host-0\", \"b\": \"rack-0\", \"bandwidth\": 100000000000, \"latency_us\": 0.3},\n"
            "    {\"a\": \"rack-0\", \"b\": \"core\", \"bandwidth\": 2.5, \"latency_us\": 0.3}\n  ]\n}\n");
}

TEST(Json, NotJson) {
  EXPECT_THAT(json_error(""), HasSubstr("malformed JSON: parse error at line 1, column 1"));
  EXPECT_THAT(json_error("{\n\"hosts\": [}"), HasSubstr("line 2, column 11"));
  EXPECT_THAT(json_error("{} {}"), HasSubstr("malformed JSON"));
  EXPECT_THAT(json_error("{\"hosts\": \"\xff\"}"), HasSubstr("malformed JSON"));
  EXPECT_THAT(json_error(std::string(100000, '[')), HasSubstr("malformed JSON"));
  EXPECT_THAT(json_error_with("1.5", "1e999"), HasSubstr("number overflow parsing '1e999'"));
  for (const char* word : {"NaN", "Infinity", "-Infinity", "nan"}) {
    EXPECT_THAT(json_error_with("1.5", word), HasSubstr("NaN and Infinity are no numbers of JSON")) << word;
  }
}

TEST(Json, NeitherTopologyNorProbes) {
  for (const char* text : {"[]", "3", "null", "{}", R"({"hosts": []})"}) {
    EXPECT_THAT(json_error(text), AllOf(HasSubstr("\"switches\" and \"links\""), HasSubstr("\"latency_us\""))) << text;
  }
}

TEST(Json, MissingAndUnknownFields) {
  EXPECT_THAT(json_error(R"({"switches": [], "links": []})"), HasSubstr("the topology has no field \"hosts\""));
  EXPECT_THAT(json_error(R"({"hosts": ["a"], "links": []})"), HasSubstr("the topology has no field \"switches\""));
  EXPECT_THAT(json_error(R"({"hosts": ["a"], "switches": []})"), HasSubstr("the topology has no field \"links\""));
  EXPECT_THAT(json_error_with("\"hosts\"", "\"x\": 1, \"hosts\""),
              HasSubstr("unknown field 'x'; its fields are \"hosts\""));
  EXPECT_THAT(json_error_with("{\"name\": \"b\"}", "{}"), HasSubstr("host 1 has no field \"name\""));
  EXPECT_THAT(json_error_with("\"place\"", "\"palce\""), HasSubstr("host 0 has the unknown field 'palce'"));
  EXPECT_THAT(json_error_with("{\"name\": \"s\"}", "{\"name\": \"s\", \"place\": []}"),
              HasSubstr("switch 0 has the unknown field 'place'"));
  EXPECT_THAT(json_error_with("\"bandwidth\": 1,", ""), HasSubstr("link 3 has no field \"bandwidth\""));
  EXPECT_THAT(json_error_with(", \"latency_us\": 1.5", ""), HasSubstr("link 0 has no field \"latency_us\""));
  EXPECT_THAT(json_error_with("\"back_bandwidth\"", "\"back\""),
              AllOf(HasSubstr("link 1 has the unknown field 'back'"), HasSubstr("\"back_bandwidth\"")));
}

TEST(Json, WrongTypes) {
  EXPECT_THAT(json_error(R"({"hosts": {}, "switches": [], "links": []})"),
              HasSubstr("\"hosts\" is an object; give a list"));
  EXPECT_THAT(json_error(R"({"hosts": ["a"], "switches": 3, "links": []})"),
              HasSubstr("\"switches\" is 3; give a list"));
  EXPECT_THAT(json_error(R"({"hosts": ["a"], "switches": [], "links": null})"), HasSubstr("\"links\" is null"));
  EXPECT_THAT(json_error_with("{\"name\": \"b\"}", "7"),
              HasSubstr("host 1 is 7; give an object with \"name\", \"place\""));
  EXPECT_THAT(json_error_with("{\"name\": \"b\"}", "\"\""), HasSubstr("host 1: \"name\" is ''; give a name"));
  EXPECT_THAT(json_error_with("{\"name\": \"b\"}", "{\"name\": 4}"), HasSubstr("host 1: \"name\" is 4; give a name"));
  EXPECT_THAT(json_error_with("{\"name\": \"s\"}", "null"), HasSubstr("switch 0 is null"));
  EXPECT_THAT(json_error_with("[0, 4294967295]", "[0, 4294967296]"), HasSubstr("host 0: \"place\" has an entry"));
  EXPECT_THAT(json_error_with("[0, 4294967295]", "[-1]"), HasSubstr("host 0: \"place\" has an entry"));
  EXPECT_THAT(json_error_with("[0, 4294967295]", "\"x\""), HasSubstr("host 0: \"place\" is 'x'; give a list"));
  EXPECT_THAT(json_error_with("\"a\": \"c\"", "\"a\": 2"), HasSubstr("link 2: \"a\" is 2; give a name"));
  EXPECT_THAT(json_error_with("\"a\": \"c\"", "\"a\": \"z\""),
              HasSubstr("link 2: \"a\" is 'z', which is the name of no host and no switch"));
}

TEST(Json, WrongSpeeds) {
  for (const char* bad : {"0", "-1", "null", "\"fast\"", "\"0Gbit\"", "[]", "true"}) {
    EXPECT_THAT(json_error_with("\"100Gbit\"", bad), HasSubstr("link 0: \"bandwidth\" is ")) << bad;
    EXPECT_THAT(json_error_with("\"10Gbit\"", bad), HasSubstr("link 1: \"back_bandwidth\" is ")) << bad;
  }
  for (const char* bad : {"-1", "null", "\"1us\"", "{}"}) {
    EXPECT_THAT(json_error_with("1.5", bad), HasSubstr("give a number of microseconds, 0 or more")) << bad;
  }
}

TEST(Json, ErrorsOfTheTopology) {
  EXPECT_THAT(json_error_with("\"t\"]", "\"a\"]"), HasSubstr("no host and no switch"));
  EXPECT_THAT(json_error_with("\"c\"]", "\"a\"]"), HasSubstr("no host and no switch"));
  EXPECT_THAT(json_error(R"({"hosts": ["a", "a"], "switches": [], "links": []})"), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(json_error(R"({"hosts": ["a", "b"], "switches": [], "links": []})"), HasSubstr("no path leads"));
  EXPECT_THAT(json_error(R"({"hosts": [], "switches": [], "links": []})"), HasSubstr("no host"));
  EXPECT_EQ(json_error(R"({"hosts": ["a"], "switches": [], "links": []})"), "");
}

TEST(Json, LatencyKeepsFewDigits) {
  for (int tenths = 0; tenths < 20000; ++tenths) {
    const double us = tenths / 10.;
    ASSERT_EQ(microseconds_of_seconds(seconds_of_microseconds(us)), us);
  }
  EXPECT_EQ(microseconds_of_seconds(1e-6), 1);
}

}  // namespace
}  // namespace gleaner::topology
