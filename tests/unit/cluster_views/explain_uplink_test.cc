// Tests of the uplink that limits a job's steps.
#include "cli/cluster/explain_uplink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/plan/model.h"

namespace gleaner::cli {
namespace {

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

TEST(ExplainUplink, NamesTheUplinkThatBinds) {
  const ExplainedJob job = explain_job(four_workers()).value();
  // Two contributions of 40 MB and two results of 40 MB leave rack b.
  const auto uplink = binding_uplink(job, two_racks(5e9));
  ASSERT_TRUE(uplink.ok()) << uplink.status();
  EXPECT_EQ(to_text(uplink),
            "Uplink     b binds: 5 Gbit/s carries 152.59 MiB of a step, 256 ms; without it a step takes 96 ms\n");
  const nlohmann::json object = to_json(uplink);
  EXPECT_EQ(object["group"], "b");
  EXPECT_EQ(object["bandwidth"], 5e9);
  EXPECT_NEAR(object["bytes"].get<double>(), 160e6, 1);
}

TEST(ExplainUplink, NothingBindsBelowTheLinksOfMachines) {
  const ExplainedJob job = explain_job(four_workers()).value();
  for (const fabric::Fabric& fabric : {two_racks(50e9), fabric::Fabric()}) {
    const auto uplink = binding_uplink(job, fabric);
    ASSERT_TRUE(uplink.ok()) << uplink.status();
    EXPECT_EQ(to_text(uplink), "");
    EXPECT_EQ(to_json(uplink), nullptr);
  }
}

TEST(ExplainUplink, SchedulesAndUnknownLinksHaveNone) {
  api::ReductionPlan plan = four_workers();
  plan.spec.members[1].bandwidth_assumed = true;
  EXPECT_FALSE(binding_uplink(explain_job(plan).value(), two_racks(5e9))->has_value());
  plan = four_workers();
  plan.spec.strategies = {{"ring", 1, 80'000'000}};
  EXPECT_FALSE(binding_uplink(explain_job(plan).value(), two_racks(5e9))->has_value());
}

TEST(ExplainUplink, SaysWhyItIsUnknown) {
  const absl::StatusOr<std::optional<BindingUplink>> unread = absl::PermissionDeniedError("no access to topologies");
  EXPECT_EQ(to_text(unread), "Uplink     unknown: no access to topologies\n");
  EXPECT_EQ(to_json(unread)["error"], "no access to topologies");
}

}  // namespace
}  // namespace gleaner::cli
