// Tests of the uplink that limits a job's steps.
#include "cli/cluster/explain_uplink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/fabric/step_bound.h"
#include "common/plan/model.h"

namespace gleaner::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Four workers of 10 Gbit/s, each of which owns a quarter of 80 MB and moves 120 MB.
api::ReductionPlan four_workers() {
  api::ReductionPlan plan;
  plan.spec.bytes_per_step = 80'000'000;
  plan.spec.bound_seconds = plan::bound_seconds({std::vector<double>(4, 10e9), {}}, 80e6);
  for (int i = 0; i < 4; ++i) {
    api::PlanMember member;
    member.role = "worker";
    member.name = absl::StrCat("worker-", i);
    member.node = absl::StrCat("n", i);
    member.bits_per_second = 10e9;
    member.owned_bytes = 20'000'000;
    member.traffic_bytes = 120'000'000;
    plan.spec.members.push_back(member);
  }
  return plan;
}

fabric::Fabric two_racks(double bits_per_second) {
  const std::vector<api::StatedUplink> uplinks = {{"rack", "b", bits_per_second}};
  return fabric::Fabric::of_labels({{"n0", {"a"}}, {"n1", {"a"}}, {"n2", {"b"}}, {"n3", {"b"}}}, {{"rack"}}, uplinks);
}

ExplainedJob explain(const api::ReductionPlan& plan, const absl::StatusOr<fabric::Fabric>& fabric) {
  ExplainedJob job = explain_job(plan).value();
  count_uplinks(fabric, job);
  return job;
}

TEST(ExplainUplink, NamesTheUplinkThatBinds) {
  api::ReductionPlan plan = four_workers();
  plan.spec.bound_seconds = 0.256;  // as of a coordinator that knows the uplink
  // Two contributions of 40 MB and two results of 40 MB leave rack b.
  const ExplainedJob job = explain(plan, two_racks(5e9));
  EXPECT_THAT(
      to_text(job),
      AllOf(HasSubstr("Step       256 ms as planned, 1.0000 of the bound of 256 ms; the uplink of b binds\n"),
            HasSubstr("Limit      the uplink of b\n"), HasSubstr("One more   summer of 10 Gbit/s: no gain\n"),
            HasSubstr(
                "Uplink     b binds: 5 Gbit/s carries 152.59 MiB of a step, 256 ms; without it a step takes 96 ms\n"),
            Not(HasSubstr("ms  binds"))));
  const nlohmann::json object = to_json(job);
  EXPECT_EQ(object["limit"], "uplink");
  EXPECT_EQ(object["uplink"]["group"], "b");
  EXPECT_EQ(object["uplink"]["bandwidth"], 5e9);
  EXPECT_NEAR(object["uplink"]["bytes"].get<double>(), 160e6, 1);
}

TEST(ExplainUplink, NothingBindsBelowTheLinksOfMachines) {
  for (const fabric::Fabric& fabric : {two_racks(50e9), fabric::Fabric()}) {
    const ExplainedJob job = explain(four_workers(), fabric);
    EXPECT_THAT(to_text(job), Not(HasSubstr("Uplink ")));
    EXPECT_EQ(to_json(job)["limit"], "all_links");
    EXPECT_EQ(to_json(job)["uplink"], nullptr);
  }
}

// Rack b has one of three workers, so its uplink carries more the more rack b owns.
TEST(ExplainUplink, NamesTheBestPlaceOfOneMoreSummer) {
  api::ReductionPlan plan = four_workers();
  plan.spec.members.pop_back();
  plan.spec.bound_seconds = plan::bound_seconds({std::vector<double>(3, 10e9), {}}, 80e6);
  const std::vector<api::StatedUplink> uplinks = {{"rack", "", 10e9}};
  const fabric::Fabric fabric = fabric::Fabric::of_labels(
      {{"n0", {"a"}}, {"n1", {"a"}}, {"n2", {"b"}}, {"n9", {"b"}}, {"n8", {}}}, {{"rack"}}, uplinks);
  const nlohmann::json one_more = to_json(explain(plan, fabric))["one_more_summer"];
  EXPECT_EQ(one_more["group"], "a");
  fabric::StepBound bound(fabric, 1);
  for (const char* node : {"n0", "n1", "n2"}) bound.add_worker(node, 10e9);
  EXPECT_NEAR(one_more["bound_seconds"].get<double>(), 80e6 * bound.with_summer("n0", 10e9), 1e-9);
}

// The Topology may have changed since the attempt began, and then no longer tells which uplink the bound counts.
TEST(ExplainUplink, AStepTakesNoLessThanItsBound) {
  api::ReductionPlan plan = four_workers();
  plan.spec.bound_seconds = 0.256;
  EXPECT_THAT(to_text(explain(plan, fabric::Fabric())),
              HasSubstr("Step       256 ms as planned, 1.0000 of the bound of 256 ms; an uplink binds\n"));
}

TEST(ExplainUplink, AFasterUplinkIsNoGainOfASummer) {
  api::ReductionPlan plan = four_workers();
  plan.spec.bound_seconds = 0.256;  // by an uplink of 5 Gbit/s
  EXPECT_THAT(to_text(explain(plan, two_racks(8e9))),
              AllOf(HasSubstr("1.0000 of the bound of 256 ms; the uplink of b binds\n"),
                    HasSubstr("One more   summer of 10 Gbit/s: no gain\n"), HasSubstr("b binds: 8 Gbit/s carries")));
}

TEST(ExplainUplink, SchedulesAndUnknownLinksHaveNone) {
  api::ReductionPlan plan = four_workers();
  plan.spec.members[1].bandwidth_assumed = true;
  EXPECT_EQ(to_json(explain(plan, two_racks(5e9)))["uplink"], nullptr);
  plan = four_workers();
  plan.spec.strategies = {{"ring", 1, 80'000'000}};
  EXPECT_EQ(to_json(explain(plan, two_racks(5e9)))["uplink"], nullptr);
}

TEST(ExplainUplink, SaysWhyItIsUnknown) {
  const ExplainedJob job = explain(four_workers(), absl::PermissionDeniedError("no access to topologies"));
  EXPECT_THAT(to_text(job), HasSubstr("Uplink     unknown: no access to topologies\n"));
  EXPECT_EQ(to_json(job)["uplink"]["error"], "no access to topologies");
}

}  // namespace
}  // namespace gleaner::cli
