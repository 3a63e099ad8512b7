// Tests of what commands tell about a job's rank map.
#include "cli/cluster/rank_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/cluster/explain_view.h"
#include "cli/cluster/job_view.h"

namespace gleaner::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Returns the plan of workers with 10 Gbit/s each, whose names have these indexes, and one summer.
api::ReductionPlan ranked_plan(const std::vector<uint32_t>& indexes, uint32_t local_ranks = 1) {
  api::ReductionPlan plan;
  plan.meta.name = "digits";
  plan.spec.bytes_per_step = 80'000'000;
  plan.spec.bound_seconds = 0.1;
  for (uint32_t number = 0; number <= indexes.size(); ++number) {
    api::PlanMember member;
    member.role = number < indexes.size() ? "worker" : "summer";
    member.name = number < indexes.size() ? absl::StrCat("worker-", indexes[number]) : "summer-0";
    if (number < indexes.size()) member.rank = number * local_ranks;
    member.bits_per_second = 10e9;
    member.owned_bytes = member.traffic_bytes = 16'000'000;
    plan.spec.members.push_back(member);
  }
  return plan;
}

api::ReductionPlan plan_of_two_racks() {
  api::ReductionPlan plan = ranked_plan({0, 2, 1, 3});
  plan.spec.rank_map = {.attempt = 0,
                        .order = api::RankOrder::kTopology,
                        .message =
                            "ranks follow the 2 groups of the workers' machines, so that a ring takes 1.2 ms "
                            "instead of 2.3 ms for a partition, by the model",
                        .groups = {{"rack-a", {0, 1}, 1e9}, {"rack-b", {2, 3}, 0}},
                        .ring = api::RingTimes{0.0023, 0.0012}};
  return plan;
}

TEST(Ranks, AreExplained) {
  const ExplainedJob job = explain_job(plan_of_two_racks()).value();
  const std::string text = to_text(job);
  EXPECT_THAT(text, HasSubstr("\nRanks      follow the 2 groups of the workers' machines, so that a ring takes 1.2 ms "
                              "instead of 2.3 ms for a partition, by the model\n"
                              "Network    rack-a: worker-0, worker-2 (ranks 0-1), uplink 1 Gbit/s; "
                              "rack-b: worker-1, worker-3 (ranks 2-3), uplink unknown, taken to carry all\n"));
  EXPECT_THAT(text, AllOf(ContainsRegex("\nMACHINE +RANK +NODE"), ContainsRegex("\nworker-2 +1 +-"),
                          ContainsRegex("\nsummer-0 +- +-")));
  const nlohmann::json json = to_json(job);
  EXPECT_EQ(json["machines"][1]["rank"], 1);
  EXPECT_EQ(json["machines"][4]["rank"], nullptr);
  EXPECT_EQ(json["rank_map"], nlohmann::json::parse(absl::StrCat(
                                  R"({"order": "Topology", "ring_seconds": 0.0012, "identity_ring_seconds": 0.0023,
      "groups": [{"name": "rack-a", "workers": ["worker-0", "worker-2"], "uplink_bits_per_second": 1e9},
                 {"name": "rack-b", "workers": ["worker-1", "worker-3"], "uplink_bits_per_second": null}],
      "message": ")",
                                  job.plan.spec.rank_map->message, "\"}")));
}

TEST(Ranks, OlderPlansHaveNone) {
  api::ReductionPlan plan = ranked_plan({0, 1});
  for (api::PlanMember& member : plan.spec.members) member.rank.reset();
  const ExplainedJob job = explain_job(plan).value();
  EXPECT_THAT(to_text(job), AllOf(Not(HasSubstr("RANK")), Not(HasSubstr("Ranks")), Not(HasSubstr("Network"))));
  EXPECT_EQ(to_json(job)["rank_map"], nullptr);
  EXPECT_EQ(to_json(job)["machines"][0]["rank"], nullptr);
}

TEST(Ranks, LocalRanksAreRanges) {
  api::ReductionPlan plan = ranked_plan({1, 0}, 8);
  plan.spec.rank_map = {.order = api::RankOrder::kTopology, .groups = {{"r1", {0}}, {"", {1}}}};
  const std::string text = to_text(explain_job(plan, 8).value());
  EXPECT_THAT(text, HasSubstr("\nRanks      follow the groups of the workers' machines\n"
                              "Network    r1: worker-1 (ranks 0-7), uplink unknown, taken to carry all; "
                              "in no group: worker-0 (ranks 8-15)\n"));
  EXPECT_THAT(text, AllOf(ContainsRegex("\nworker-1 +0-7 "), ContainsRegex("\nworker-0 +8-15 ")));
}

TEST(Ranks, AThousandWorkersMakeAShortLine) {
  std::vector<uint32_t> indexes(1000);
  for (uint32_t i = 0; i < 1000; ++i) indexes[i] = i;
  api::ReductionPlan plan = ranked_plan(indexes);
  plan.spec.rank_map = {.order = api::RankOrder::kIdentity, .message = "spec.communication.rankMap is Identity"};
  for (uint32_t rack = 0; rack < 20; ++rack) {
    api::RankMapGroup group{absl::StrCat("rack-", rack), {}, 100e9};
    for (uint32_t i = 0; i < 50; ++i) group.workers.push_back(rack + 20 * i);
    plan.spec.rank_map->groups.push_back(group);
  }
  const std::string text = ranks_text(plan.spec, 1);
  EXPECT_THAT(text, HasSubstr("Ranks      are the workers' indexes, since spec.communication.rankMap is Identity\n"));
  EXPECT_THAT(text, HasSubstr("rack-1: worker-1, worker-21, worker-41, worker-61, worker-81 and 45 more "
                              "(ranks 1, 21, 41, 61, 81 and 45 more), uplink 100 Gbit/s; "));
  EXPECT_THAT(text, AllOf(HasSubstr(" and 15 more\n"), Not(HasSubstr("rack-5"))));
  plan.spec.rank_map->groups = {{"half", {}, 1e9}};
  for (uint32_t i = 0; i < 500; ++i) plan.spec.rank_map->groups[0].workers.push_back(i);
  EXPECT_THAT(ranks_text(plan.spec, 1), HasSubstr("worker-4 and 495 more (ranks 0-499), uplink"));
}

TEST(Ranks, GroupsOfOtherWorkersAreRefused) {
  api::ReductionPlan plan = plan_of_two_racks();
  plan.spec.rank_map->groups[1].workers = {2, 4};
  const absl::Status refused = explain_job(plan).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("the group 'rack-b' of its rank map has worker number 4 of 4"));
}

TEST(Ranks, StatusHasTheReason) {
  api::TrainingJob job;
  EXPECT_THAT(job_text(job, std::nullopt, {}, absl::Now()), Not(HasSubstr("Ranks")));
  job.status.communication.rank_map = {.attempt = 2, .message = "no label tells the workers' machines apart"};
  EXPECT_THAT(job_text(job, std::nullopt, {}, absl::Now()), Not(HasSubstr("Ranks"))) << "of an earlier attempt";
  job.status.attempt = 2;
  EXPECT_THAT(job_text(job, std::nullopt, {}, absl::Now()),
              ContainsRegex("\nRanks +are the workers' indexes, since no label tells the workers' machines apart\n"));
}

}  // namespace
}  // namespace gleaner::cli
