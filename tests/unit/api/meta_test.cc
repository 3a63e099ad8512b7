#include "common/api/meta.h"

#include <gtest/gtest.h>

namespace gleaner::api {
namespace {

using nlohmann::json;

TEST(MetaTest, ReadsMetadataFromTheServer) {
  const auto meta = parse_meta(json::parse(R"({"metadata": {
    "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "12", "generation": 3,
    "creationTimestamp": "2026-01-31T12:00:00Z", "deletionTimestamp": "2026-01-31T12:00:05Z",
    "labels": {"l": "1"}, "annotations": {"n": "2"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "x", "controller": true}]}})"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->key(), "b/a");
  EXPECT_EQ(meta->uid, "u");
  EXPECT_EQ(meta->resource_version, "12");
  EXPECT_EQ(meta->generation, 3);
  EXPECT_EQ(meta->creation_time, absl::FromUnixSeconds(1769860800));
  EXPECT_EQ(meta->deletion_time, absl::FromUnixSeconds(1769860805));
  EXPECT_EQ(meta->labels.at("l"), "1");
  EXPECT_EQ(meta->annotations.at("n"), "2");
  ASSERT_EQ(meta->owners.size(), 1U);
  EXPECT_EQ(meta->owners[0].name, "n1");
  EXPECT_TRUE(meta->owners[0].controller);
}

TEST(MetaTest, DoesNotWriteFieldsThatOnlyTheServerSets) {
  ObjectMeta meta;
  meta.name = "a";
  meta.uid = "u";
  meta.resource_version = "12";
  meta.generation = 3;
  EXPECT_EQ(to_json(meta), json({{"name", "a"}}));
}

TEST(MetaTest, TheControllersReferenceBlocksItsDeletion) {
  ObjectMeta meta;
  meta.owners = {{.api_version = "v1", .kind = "Node", .name = "n1", .uid = "x", .controller = false},
                 {.api_version = kApiVersion, .kind = "TrainingJob", .name = "j", .uid = "y", .controller = true}};
  const json owners = to_json(meta)["ownerReferences"];
  EXPECT_FALSE(owners[0].contains("controller"));
  EXPECT_EQ(owners[1]["controller"], true);
  EXPECT_EQ(owners[1]["blockOwnerDeletion"], true);
}

TEST(ConditionTest, RoundTrip) {
  const Condition condition{.type = "Running",
                            .status = true,
                            .reason = "AllThere",
                            .message = "4 of 4",
                            .last_transition = absl::FromUnixSeconds(1769860800),
                            .observed_generation = 4};
  const auto again = parse_condition(to_json(condition));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, condition);
}

TEST(ConditionTest, TheTransitionTimeChangesOnlyWithTheStatus) {
  const absl::Time first = absl::FromUnixSeconds(1000), later = first + absl::Milliseconds(5700);
  std::vector<Condition> conditions;
  EXPECT_TRUE(set_condition(conditions, {.type = "Running", .status = false, .reason = "Waiting"}, first));
  EXPECT_FALSE(set_condition(conditions, {.type = "Running", .status = false, .reason = "Waiting"}, later));
  EXPECT_TRUE(set_condition(conditions, {.type = "Running", .status = false, .reason = "Pulling"}, later));
  EXPECT_EQ(find_condition(conditions, "Running")->last_transition, first);
  EXPECT_EQ(find_condition(conditions, "Running")->reason, "Pulling");
  EXPECT_TRUE(set_condition(conditions, {.type = "Running", .status = true, .reason = "AllThere"}, later));
  EXPECT_EQ(find_condition(conditions, "Running")->last_transition, absl::FromUnixSeconds(1005)) << "whole seconds";
  EXPECT_EQ(conditions.size(), 1U);
  EXPECT_EQ(find_condition(conditions, "Failed"), nullptr);
}

TEST(LabelKeyTest, IsCheckedAsKubernetesDoes) {
  const std::string name(63, 'a'), prefix = std::string(249, 'p') + ".com";
  for (const std::string& key :
       {std::string("zone"), std::string("topology.kubernetes.io/zone"), std::string("a"), std::string("A_b.c-9"),
        std::string("1.example/Rack_0"), name, "example.com/" + name, prefix + "/a"}) {
    EXPECT_TRUE(check_label_key(key).ok()) << key;
  }
  for (const std::string& key :
       {std::string(""), std::string(" zone"), std::string("zone "), std::string("-a"), std::string("a_"),
        std::string("a b"), std::string("/a"), std::string("example.com/"), std::string("a/b/c"),
        std::string("Example.com/a"), std::string("a..b/c"), std::string("-a/b"), std::string("a_b/c"),
        std::string("zone=a"), std::string("caf\xc3\xa9"), std::string("a\nb"), name + "a", "p" + prefix + "/a"}) {
    EXPECT_EQ(check_label_key(key).code(), absl::StatusCode::kInvalidArgument) << key;
  }
}

}  // namespace
}  // namespace gleaner::api
