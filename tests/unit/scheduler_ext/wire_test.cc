// Tests of the JSON that kube-scheduler sends and expects. recorded/ has what kube-scheduler 1.34.4 sent to an extender
// with nodeCacheCapable (names) and to one without (nodes).
#include "scheduler-ext/http/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/scheduler_ext/cluster.h"

namespace gleaner::extender {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string problem(const std::string& body) {
  const auto args = parse_args(body);
  EXPECT_EQ(args.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(args.status().message());
}

TEST(Wire, ReadsRequestsOfTheScheduler) {
  for (const std::string file :
       {"filter-names.json", "prioritize-names.json", "filter-nodes.json", "prioritize-nodes.json"}) {
    SCOPED_TRACE(file);
    const auto args = parse_args(recorded(file));
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_EQ(args->by_name, file.find("names") != std::string::npos);
    EXPECT_THAT(args->names, testing::UnorderedElementsAre("n1", "n2", "n3"));
    EXPECT_EQ(args->pod.key, "default/digits-summer-0");
    EXPECT_EQ(args->pod.job, "default/digits");
    EXPECT_EQ(args->pod.role, "summer");
    EXPECT_DOUBLE_EQ(args->pod.cpus, 0.1);
    EXPECT_EQ(args->pod.memory_bytes, uint64_t{256} << 20);
    EXPECT_EQ(args->pod.bits_per_second, 2e9);
    EXPECT_EQ(args->pod.node, "");
  }
}

TEST(Wire, AnswersNamesWithNames) {
  Args args;
  args.names = {"n1", "n2", "n3"};
  const json result = json::parse(filter_result(args, {"", "no \"room\"\n\xff", ""}));
  EXPECT_EQ(result.size(), 5u);
  EXPECT_EQ(result["NodeNames"], json({"n1", "n3"}));
  EXPECT_TRUE(result["Nodes"].is_null());
  EXPECT_EQ(result["FailedNodes"], json::object());
  EXPECT_EQ(result["FailedAndUnresolvableNodes"].size(), 1u);
  EXPECT_THAT(result["FailedAndUnresolvableNodes"]["n2"].get<std::string>(), testing::StartsWith("no \"room\"\n"));
  EXPECT_EQ(result["Error"], "");
}

TEST(Wire, AnswersNodesWithUnchangedNodes) {
  auto args = parse_args(recorded("filter-nodes.json"));
  ASSERT_TRUE(args.ok()) << args.status();
  const json asked = json::parse(recorded("filter-nodes.json"));
  std::vector<std::string> why_not;
  for (const std::string& name : args->names) why_not.push_back(name == "n2" ? "too slow" : "");
  const json result = json::parse(filter_result(*args, why_not));
  EXPECT_TRUE(result["NodeNames"].is_null());
  EXPECT_EQ(result["FailedAndUnresolvableNodes"], json({{"n2", "too slow"}}));
  json expected = json::array();
  for (const json& node : asked["Nodes"]["items"]) {
    if (node["metadata"]["name"] != "n2") expected.push_back(node);
  }
  EXPECT_EQ(result["Nodes"]["items"], expected);
  EXPECT_EQ(expected.size(), 2u);
}

TEST(Wire, AnEmptyListIsAList) {
  Args args;
  args.names = {"n1"};
  EXPECT_EQ(json::parse(filter_result(args, {"no"}))["NodeNames"], json::array());
  args.names.clear();
  EXPECT_EQ(json::parse(filter_result(args, {}))["NodeNames"], json::array());
  EXPECT_EQ(host_priorities({}, {}), "[]");
}

TEST(Wire, ScoresAreAHostPriorityList) {
  EXPECT_EQ(json::parse(host_priorities({"n1", "n2"}, {10, 0})),
            json::parse(R"([{"Host": "n1", "Score": 10}, {"Host": "n2", "Score": 0}])"));
}

TEST(Wire, ErrorsNameTheField) {
  EXPECT_THAT(problem(""), HasSubstr("expected JSON"));
  EXPECT_THAT(problem("{\"Pod\": {"), HasSubstr("line 1, column"));
  EXPECT_THAT(problem("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(problem("{}"), HasSubstr("Pod: expected"));
  EXPECT_THAT(problem(R"({"Pod": null, "NodeNames": []})"), HasSubstr("Pod: expected"));
  EXPECT_THAT(problem(R"({"Pod": {}})"), HasSubstr("NodeNames or Nodes"));
  EXPECT_THAT(problem(R"({"Pod": {}, "NodeNames": null, "Nodes": null})"), HasSubstr("NodeNames or Nodes"));
  EXPECT_THAT(problem(R"({"Pod": {}, "NodeNames": "n1"})"), HasSubstr("NodeNames: expected a list"));
  EXPECT_THAT(problem(R"({"Pod": {}, "NodeNames": ["n1", 2]})"), HasSubstr("NodeNames[1]"));
  EXPECT_THAT(problem(R"({"Pod": {}, "Nodes": []})"), HasSubstr("NodeList"));
  EXPECT_THAT(problem(R"({"Pod": {}, "Nodes": {"items": [{"metadata": {}}]}})"), HasSubstr("items[0].metadata.name"));
  EXPECT_THAT(problem(R"({"Pod": {"metadata": {"labels": 3}}, "NodeNames": []})"), HasSubstr("Pod.metadata.labels"));
}

TEST(Wire, PodsOfOtherProgramsAreIgnored) {
  const auto args = parse_args(R"({"Pod": {"metadata": {"name": "web", "labels": {"gleaner.dev/role": "summer"}}},
                                   "NodeNames": ["n1"]})");
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(args->pod.job, IsEmpty());
  EXPECT_THAT(args->names, ElementsAre("n1"));
  const auto odd = parse_args(R"({"Pod": {"metadata": {"name": "x", "labels": {"gleaner.dev/role": "cook",
                                  "gleaner.dev/job": "digits"}}}, "Nodes": {"items": null}})");
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(odd->pod.role, "");
  EXPECT_THAT(odd->names, IsEmpty());
}

}  // namespace
}  // namespace gleaner::extender
