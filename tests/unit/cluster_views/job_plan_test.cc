// Tests of the fleet that a job would get from a cluster.
#include "cli/cluster/job_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/placement/machines.h"

namespace gleaner::cli {
namespace {

using placement::kNow;
using placement::Pod;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class PlanOfAJob : public testing::Test {
 protected:
  PlanOfAJob() {
    job_.meta.name = "digits";
    job_.meta.ns = "team";
    job_.workers.replicas = 4;
    job_.communication.summers.max = 4;
    for (int i = 0; i < 6; ++i) add_machine(absl::StrCat("n", i));
  }
  void add_machine(const std::string& name, double spare_bits = 20e9) {
    placement::Node node;
    node.name = name;
    node.ready = true;
    cluster_.set_node(std::make_shared<const placement::Node>(node));
    api::NodeProfile profile = placement::spare_profile(name);
    profile.status.spare.bits_per_second = spare_bits;
    cluster_.set_profile(std::make_shared<const api::NodeProfile>(profile));
  }
  void add_pod(const std::string& name, const std::string& role, const std::string& node, double bits = 0) {
    Pod pod;
    pod.key = "team/" + name;
    pod.job = "team/digits";
    pod.role = role;
    pod.node = node;
    pod.bits_per_second = bits;
    pods_.push_back(pod);
    cluster_.set_pod(std::make_shared<const Pod>(pod));
  }
  absl::StatusOr<JobFleet> fleet() { return fleet_for(job_, cluster_, fabric_, pods_, kNow); }

  api::TrainingJob job_;
  placement::Fleet cluster_{placement::Fleet::Taints::kRefuse};
  fabric::Fabric fabric_;
  std::vector<Pod> pods_;
};

TEST_F(PlanOfAJob, WorkersWithoutAMachineHaveAnAssumedSpeed) {
  const auto result = fleet();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->assumed, 4u);
  EXPECT_THAT(result->fleet.worker_bits_per_second, ElementsAre(25e9, 25e9, 25e9, 25e9));
  EXPECT_THAT(result->fleet.summer_bits_per_second, ElementsAre(20e9, 20e9, 20e9, 20e9));
  EXPECT_THAT(to_text(job_, *result), HasSubstr("Workers on no machine yet: 4, assumed to have 25 Gbit/s each"));
}

TEST_F(PlanOfAJob, SummersAreOnOtherMachinesThanWorkers) {
  add_pod("digits-worker-0", "worker", "n0");
  add_pod("digits-worker-1-r2", "worker", "n1", 5e9);
  add_pod("digits-worker-2", "worker", "");
  add_pod("digits-summer-0", "summer", "n5", 20e9);  // a summer of the job itself, so its machine counts as free
  const auto result = fleet();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->fleet.worker_bits_per_second, ElementsAre(25e9, 5e9, 25e9, 25e9));
  EXPECT_EQ(result->assumed, 2u);
  ASSERT_GE(result->nodes.size(), 4u);
  EXPECT_EQ(result->nodes[0], "n0");
  EXPECT_EQ(result->nodes[1], "n1");
  EXPECT_EQ(result->nodes[2], "");
  const std::vector<std::string> summers(result->nodes.begin() + 4, result->nodes.end());
  EXPECT_THAT(summers, testing::IsSubsetOf({"n2", "n3", "n4", "n5"}));
  EXPECT_THAT(result->refusals, ElementsAre(HasSubstr("n0: a worker of this job"), HasSubstr("n1: a worker")));
}

TEST_F(PlanOfAJob, UsesAsManySummersAsHelpAndAreAllowed) {
  job_.communication.summers.max = 2;
  EXPECT_THAT(fleet()->fleet.summer_bits_per_second, SizeIs(2));
  job_.communication.summers.bits_per_second = 1e9;
  EXPECT_THAT(fleet()->fleet.summer_bits_per_second, Each(1e9));
  job_.communication.strategy = api::Strategy::kColocated;
  EXPECT_THAT(fleet()->fleet.summer_bits_per_second, SizeIs(0));
  EXPECT_THAT(to_text(job_, *fleet()), HasSubstr("the strategy is Colocated"));
}

TEST_F(PlanOfAJob, TheBandwidthLimitOfTheTemplateApplies) {
  job_.workers.pod_template = {{"metadata", {{"annotations", {{"kubernetes.io/egress-bandwidth", "200M"}}}}}};
  EXPECT_THAT(fleet()->fleet.worker_bits_per_second, Each(200e6));
}

TEST_F(PlanOfAJob, RequestsOfSummersCount) {
  job_.communication.summers.resources = {{"requests", {{"cpu", "12"}}}};
  const auto result = fleet();
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->fleet.summer_bits_per_second, SizeIs(0));
  EXPECT_THAT(result->refusals, Each(HasSubstr("spare CPU 10 is below 12")));
  EXPECT_THAT(to_text(job_, *result), HasSubstr("and 1 more"));
}

TEST_F(PlanOfAJob, UplinksDecideAboutSummers) {
  fabric_ = fabric::Fabric::of_labels(
      {{"n0", {"a"}}, {"n1", {"a"}}, {"n2", {"a"}}, {"n3", {"a"}}, {"n4", {"b"}}, {"n5", {"b"}}}, {{"rack"}},
      std::vector<api::StatedUplink>{{"rack", "b", 1e6}});
  for (int i = 0; i < 4; ++i) add_pod(absl::StrCat("digits-worker-", i), "worker", absl::StrCat("n", i));
  const auto result = fleet();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->fleet.summer_bits_per_second, SizeIs(0)) << "rack b has an uplink of 1 Mbit/s";
  EXPECT_FALSE(result->network.has_value());
  job_.communication.summers.min = 1;
  ASSERT_TRUE(fleet()->network.has_value());
  EXPECT_EQ(fleet()->network->switches().size(), 3u);
}

TEST_F(PlanOfAJob, NeedsASpeed) {
  placement::Fleet empty{placement::Fleet::Taints::kRefuse};
  EXPECT_EQ(fleet_for(job_, empty, fabric_, {}, kNow).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gleaner::cli
