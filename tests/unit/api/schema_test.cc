// Tests that the schemas in crds/ and the C++ types agree: fields, types, names, limits and defaults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "common/api/text.h"
#include "common/base/utf8.h"
#include "tests/unit/api/samples.h"
#include "tests/unit/api/schema.h"

namespace gleaner::api {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::StartsWith;

struct Kind {
  std::string file;
  json filled;  // has every field
  json least;   // has only the required fields
  std::function<absl::StatusOr<json>(const json&)> again;
};

template <class Object>
absl::StatusOr<json> written(const absl::StatusOr<Object>& object) {
  if (!object.ok()) return object.status();
  return to_json(*object);
}

Kind job_kind() {
  const json least = {{"metadata", {{"name", "least"}}},
                      {"spec", {{"workers", {{"template", {{"spec", {{"containers", {{{"name", "a"}}}}}}}}}}}}};
  json filled = to_json(filled_job());
  // No strategy has both, so that the API server admits no job with all fields.
  filled["spec"]["communication"]["stages"] = {2, 3};
  filled["spec"]["communication"]["radix"] = 2;
  return {"trainingjob.yaml", std::move(filled), least,
          [](const json& object) { return written(parse_training_job(object)); }};
}

Kind profile_kind() {
  return {"nodeprofile.yaml", to_json(filled_profile()), to_json(NodeProfile{}),
          [](const json& object) { return written(parse_node_profile(object)); }};
}

Kind topology_kind() {
  return {"topology.yaml", to_json(filled_topology()), to_json(Topology{}),
          [](const json& object) { return written(parse_topology(object)); }};
}

Kind plan_kind() {
  return {"reductionplan.yaml", to_json(filled_plan()), to_json(ReductionPlan{}),
          [](const json& object) { return written(parse_reduction_plan(object)); }};
}

class SchemaTest : public testing::TestWithParam<Kind (*)()> {
 protected:
  const Kind kind_ = GetParam()();
  const Walk walk_ = walk_schema(kind_.file, kind_.filled);

  absl::StatusOr<json> with(const Leaf& leaf, const json& value) const {
    json object = kind_.filled;
    object[leaf.pointer] = value;
    return kind_.again(object);
  }

  // Returns whether a field is derived: it is written for people from other fields, and is never read.
  static bool is_derived(const Leaf& leaf) {
    static const std::set<std::string> kDerived = {
        "status.workers", "status.nicCount",         "status.gpuCount",         "status.speed",
        "spec.bound",     "spec.memberCount",        "status.spare.bandwidth",  "status.groupCount",
        "status.latency", "status.groups[0].uplink", "status.groups[0].latency"};
    return kDerived.contains(leaf.path);
  }

  // Returns whether people write a field.
  static bool is_of_users(const Leaf& leaf) {
    return leaf.path.starts_with("spec.communication") || leaf.path.starts_with("spec.uplinks");
  }
};

TEST_P(SchemaTest, EveryFieldOfTheSchemaIsWrittenAndNoOther) {
  EXPECT_THAT(walk_.differences, IsEmpty());
  EXPECT_GT(walk_.leaves.size(), 15U);
}

TEST_P(SchemaTest, EveryFieldIsReadAgain) {
  const auto again = kind_.again(kind_.filled);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, kind_.filled);
}

TEST_P(SchemaTest, TheFilledObjectHasNoDefaults) {
  const auto defaults = kind_.again(kind_.least);
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  for (const Leaf& leaf : walk_.leaves) {
    if (!defaults->contains(leaf.pointer) || leaf.path == "spec.communication.strategy") continue;
    EXPECT_NE((*defaults)[leaf.pointer], kind_.filled[leaf.pointer]) << leaf.path << " would not be tested";
  }
}

TEST_P(SchemaTest, DefaultsAreThoseOfTheSchema) {
  const auto defaults = kind_.again(kind_.least);
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  for (const Leaf& leaf : walk_.leaves) {
    if (leaf.fallback.is_null()) continue;
    ASSERT_TRUE(defaults->contains(leaf.pointer)) << leaf.path;
    EXPECT_EQ((*defaults)[leaf.pointer], leaf.fallback) << leaf.path;
  }
}

TEST_P(SchemaTest, EveryNameOfAnEnumIsKnown) {
  for (const Leaf& leaf : walk_.leaves) {
    for (const std::string& name : leaf.names) {
      if (name == "Colocated") continue;  // it does not go with the summers of the filled job
      const auto again = with(leaf, name);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ((*again)[leaf.pointer], name) << leaf.path;
    }
  }
}

TEST_P(SchemaTest, ValuesThatTheSchemaRefusesAreRefusedWithTheirPath) {
  for (const Leaf& leaf : walk_.leaves) {
    if (is_derived(leaf)) continue;
    const json wrong = leaf.type == "boolean" ? json("yes") : leaf.type == "map" ? json("seven") : json(true);
    const auto again = with(leaf, wrong);
    EXPECT_FALSE(again.ok()) << leaf.path;
    EXPECT_THAT(std::string(again.status().message()), StartsWith(leaf.path + ": expected "));
    if (leaf.has_least) {
      EXPECT_THAT(std::string(with(leaf, leaf.least - 1).status().message()), StartsWith(leaf.path + ": expected "))
          << leaf.least;
    }
    if (leaf.has_most) {
      EXPECT_THAT(std::string(with(leaf, leaf.most + 1).status().message()), StartsWith(leaf.path + ": expected "))
          << leaf.most;
    }
  }
}

// Returns the number of characters as the API server counts them.
size_t characters(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
}

// The specs of TrainingJob and Topology are not among them: the operator does not write them.
TEST_P(SchemaTest, EveryTextIsShortenedToItsLimit) {
  std::string mixed;
  for (int i = 0; i < 20000; ++i) mixed += i % 3 == 0 ? "\xf0\x9f\x9a\x80" : "a\n\xff";
  for (const Leaf& leaf : walk_.leaves) {
    const bool is_free = leaf.type == "string" && leaf.most_characters > 0 && leaf.names.empty();
    if (!is_free || is_derived(leaf) || is_of_users(leaf)) continue;
    for (const std::string& text : {std::string(), std::string(100000, 'a'), std::string(70000, '\xff'), mixed}) {
      const auto again = with(leaf, text);
      if (!again.ok()) continue;  // the field has a pattern
      if (!again->contains(leaf.pointer)) continue;
      const auto written = (*again)[leaf.pointer].get<std::string>();
      EXPECT_TRUE(is_utf8(written)) << leaf.path;
      EXPECT_LE(characters(written), leaf.most_characters) << leaf.path;
      EXPECT_GE(characters(written), leaf.least_characters) << leaf.path;
      EXPECT_EQ((*kind_.again(*again))[leaf.pointer], written) << "what is read back stays as it is";
    }
  }
}

TEST_P(SchemaTest, UnknownFieldsAreIgnored) {
  json object = kind_.filled;
  object["status"]["later"] = {{"version", 2}};
  const auto again = kind_.again(object);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, kind_.filled);
}

std::string kind_name(const testing::TestParamInfo<Kind (*)()>& tested) {
  return (*tested.param)().filled["kind"].get<std::string>();
}

INSTANTIATE_TEST_SUITE_P(Kinds, SchemaTest, testing::Values(&job_kind, &profile_kind, &topology_kind, &plan_kind),
                         kind_name);

TEST(SchemaLimitsTest, LongListsAreCut) {
  NodeProfile profile = filled_profile();
  profile.status.nics.resize(300, profile.status.nics.front());
  profile.status.gpus.resize(100, profile.status.gpus.front());
  profile.status.paths.resize(5000, profile.status.paths.front());
  profile.status.peers.resize(300, profile.status.peers.front());
  profile.status.peer_bandwidths.resize(100, profile.status.peer_bandwidths.front());
  const json status = to_json(profile.status);
  EXPECT_EQ(status["nics"].size(), 256U);
  EXPECT_EQ(status["peers"].size(), 256U);
  EXPECT_EQ(status["peerBandwidths"].size(), 64U);
  EXPECT_EQ(status["nicCount"], 300U);
  EXPECT_EQ(status["gpus"].size(), 64U);
  EXPECT_EQ(status["paths"].size(), 4096U);
  ReductionPlan plan = filled_plan();
  plan.spec.members.front().transports.resize(9, "tcp");
  EXPECT_EQ(to_json(plan)["spec"]["members"][0]["transports"].size(), 8U);
  Topology topology = filled_topology();
  topology.status.groups.front().nodes.resize(9000, "n1");
  topology.status.groups.resize(10000);
  const json network = to_json(topology.status);
  EXPECT_EQ(network["groups"].size(), 8192U);
  EXPECT_EQ(network["groupCount"], 10000U);
  EXPECT_EQ(network["groups"][0]["nodes"].size(), 8192U);
}

TEST(SchemaLimitsTest, TheLongestTextOfIndexesFits) {
  std::vector<uint32_t> indexes;
  for (uint32_t i = 0; i < kMaxReplicas; ++i) {
    if (i % 3 != 2) indexes.push_back(i);
  }
  const Walk walk = walk_schema("trainingjob.yaml", job_kind().filled);
  const auto workers = std::ranges::find(walk.leaves, "status.rankMap.groups[0].workers", &Leaf::path);
  ASSERT_NE(workers, walk.leaves.end());
  EXPECT_LE(indexes_text(indexes).size(), workers->most_characters);
}

TEST(SchemaLimitsTest, ConditionsStayAsTheyAreRead) {
  std::vector<Condition> conditions;
  const Condition refused{.type = "Created", .message = std::string(100000, 'a')};
  EXPECT_TRUE(set_condition(conditions, refused, absl::UnixEpoch()));
  EXPECT_EQ(*parse_condition(to_json(conditions.front())), conditions.front());
  EXPECT_FALSE(set_condition(conditions, refused, absl::UnixEpoch())) << "the same condition is no change";
}

TEST(SchemaLimitsTest, AreThoseOfTheConstants) {
  const Walk walk = walk_schema("trainingjob.yaml", job_kind().filled);
  std::vector<int64_t> most;
  for (const Leaf& leaf : walk.leaves) {
    const bool counted = leaf.path == "spec.workers.replicas" || leaf.path == "spec.workers.localRanks" ||
                         leaf.path == "spec.communication.stages[0]" || leaf.path == "spec.communication.radix" ||
                         leaf.path == "spec.communication.summers.max";
    if (counted) most.push_back(leaf.most);
  }
  EXPECT_THAT(most,
              testing::UnorderedElementsAre(kMaxReplicas, kMaxLocalRanks, kMaxReplicas, kMaxReplicas, kMaxSummers));
}

}  // namespace
}  // namespace gleaner::api
