#include "common/kube/object.h"

#include <gtest/gtest.h>

#include "common/kube/paths.h"

namespace gleaner::kube {
namespace {

using nlohmann::json;

TEST(ParseObject, LeavesOutManagedFieldsOnly) {
  const auto parsed = parse_object(R"({
    "items": [{"metadata": {"name": "a", "managedFields": [{"fieldsV1": {"f:x": {"metadata": [1, {"y": 2}]}}}, 3],
                            "uid": "u"}, "spec": {"managedFields": [1], "n": -1.5, "b": true, "z": null}},
              {"metadata": {"managedFields": "text", "name": "b"}}],
    "metadata": {"managedFields": {}, "resourceVersion": "7"}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, json::parse(R"({
    "items": [{"metadata": {"name": "a", "uid": "u"},
               "spec": {"managedFields": [1], "n": -1.5, "b": true, "z": null}},
              {"metadata": {"name": "b"}}],
    "metadata": {"resourceVersion": "7"}})"));
}

TEST(ParseObject, AgreesWithTheFullParser) {
  for (const char* text : {"[]", "{}", "[[],[1,[2,{}]],{\"a\":[{}]}]", "\"text\"", "12", "{\"metadata\":[1,2]}",
                           "{\"metadata\":{\"metadata\":{\"a\":1}}}", "{\"a\":18446744073709551615}"}) {
    const auto parsed = parse_object(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, json::parse(text));
  }
}

TEST(ParseObject, RefusesMalformedJson) {
  for (const char* text : {"", "{", "{\"a\":}", "ok", "{} {}", "\xff"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(parse_object(text).status())) << text;
  }
}

TEST(Object, ReadersTreatWrongTypesAsMissing) {
  EXPECT_EQ(name_of(json(3)), "");
  EXPECT_EQ(name_of(json{{"metadata", {{"name", 3}}}}), "");
  EXPECT_EQ(name_of(json{{"metadata", "x"}}), "");
  EXPECT_EQ(key_of(json{{"metadata", {{"name", "a"}, {"namespace", "n"}}}}), "n/a");
  EXPECT_EQ(key_of(json{{"metadata", {{"name", "a"}}}}), "a");
}

TEST(Paths, MatchTheApiServer) {
  EXPECT_EQ(collection_path(pods(), ""), "/api/v1/pods");
  EXPECT_EQ(collection_path(pods(), "team"), "/api/v1/namespaces/team/pods");
  EXPECT_EQ(object_path(training_jobs(), "team", "digits", "status"),
            "/apis/gleaner.dev/v1alpha1/namespaces/team/trainingjobs/digits/status");
  EXPECT_EQ(object_path(nodes(), "", "n1", ""), "/api/v1/nodes/n1");
  EXPECT_EQ(object_path(pods(), "team", "../secrets/x?y", ""), "/api/v1/namespaces/team/pods/..%2Fsecrets%2Fx%3Fy");
  EXPECT_EQ(query_text({{"a", "x=y,z in (1,2)"}, {"b", ""}, {"c", "1"}}), "?a=x%3Dy%2Cz%20in%20%281%2C2%29&c=1");
}

}  // namespace
}  // namespace gleaner::kube
