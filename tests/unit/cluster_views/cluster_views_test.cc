// Tests of the texts that commands print about a cluster, made from objects as the API server has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/explain_view.h"
#include "cli/cluster/job_view.h"
#include "cli/cluster/logs_view.h"
#include "cli/cluster/table.h"
#include "cli/cluster/top_view.h"
#include "common/kube/resource.h"
#include "common/plan/model.h"
#include "tests/unit/placement/machines.h"

namespace gleaner::cli {
namespace {

using placement::kNow;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

api::TrainingJob job_of(const std::string& name) {
  api::TrainingJob job;
  job.meta.name = name;
  job.meta.ns = "team";
  job.meta.creation_time = kNow - absl::Minutes(5);
  job.workers.replicas = 4;
  job.communication.summers.max = 2;
  job.status.phase = "Running";
  job.status.workers_ready = 4;
  job.status.summers_ready = 2;
  job.status.epoch = 3;
  job.status.communication.bound = "59.6 ms";
  job.status.communication.goodput = "12.3 MB/s";
  job.status.communication.efficiency = "97.2 %";
  job.status.conditions = {{"Running", true, "AllWorkersRun", "4 of 4 workers run", kNow - absl::Minutes(3), 1}};
  return job;
}

// Returns the plan of 4 workers and 2 summers with 10 Gbit/s each and 80 MB a step, split according to the model.
api::ReductionPlan plan_of(double worker_bits = 10e9) {
  api::ReductionPlan plan;
  plan.meta.name = "digits";
  plan.meta.ns = "team";
  plan.spec.epoch = 3;
  plan.spec.tensors = 5;
  plan.spec.partitions = 100;
  plan.spec.bytes_per_step = 80'000'000;
  plan::Fleet fleet{{worker_bits, 10e9, 10e9, 10e9}, {10e9, 10e9}};
  plan.spec.bound_seconds = plan::bound_seconds(fleet, 80e6);
  plan.spec.bound_without_summers_seconds = plan::bound_seconds({fleet.worker_bits_per_second, {}}, 80e6);
  const std::vector<double> shares = plan::shares(fleet);
  std::vector<uint64_t> owned;
  for (const double share : shares) owned.push_back(static_cast<uint64_t>(share * 80e6));
  const std::vector<double> traffic = plan::traffic_bytes(fleet, owned);
  for (size_t i = 0; i < shares.size(); ++i) {
    api::PlanMember member;
    member.role = i < 4 ? "worker" : "summer";
    member.name = i < 4 ? absl::StrCat("worker-", i) : absl::StrCat("summer-", i - 4);
    member.node = absl::StrCat("n", i);
    member.bits_per_second = i == 0 ? worker_bits : 10e9;
    member.owned_bytes = owned[i];
    member.traffic_bytes = static_cast<uint64_t>(traffic[i]);
    plan.spec.members.push_back(member);
  }
  plan.status = {6, 3, 100, 0.0825, 970e6, 0.97};
  return plan;
}

TEST(Table, AlignsByCharacters) {
  EXPECT_EQ(table({{"A", "B", "C"}, {"längst", "x", ""}, {"s", "yy", "z"}}),
            "A        B    C\nlängst   x\ns        yy   z\n");
}

TEST(Age, IsWrittenAsByKubectl) {
  EXPECT_EQ(age(kNow - absl::Seconds(119), kNow), "119s");
  EXPECT_EQ(age(kNow - absl::Minutes(119), kNow), "119m");
  EXPECT_EQ(age(kNow - absl::Hours(47), kNow), "47h");
  EXPECT_EQ(age(kNow - absl::Hours(49), kNow), "2d");
  EXPECT_EQ(age(kNow + absl::Seconds(5), kNow), "0s");
  EXPECT_EQ(age(absl::InfinitePast(), kNow), "-");
}

TEST(Status, ListsJobsInOrder) {
  api::TrainingJob fresh;
  fresh.meta.name = "alpha";
  fresh.meta.ns = "team";
  fresh.meta.creation_time = kNow;
  EXPECT_EQ(jobs_table({job_of("digits"), fresh}, false, kNow),
            "NAME     PHASE     WORKERS   SUMMERS   EPOCH   GOODPUT     EFFICIENCY   AGE\n"
            "alpha    -         0/1       0         -       -           -            0s\n"
            "digits   Running   4/4       2         3       12.3 MB/s   97.2 %       5m\n");
  EXPECT_THAT(jobs_table({job_of("digits")}, true, kNow),
              AllOf(testing::StartsWith("NAMESPACE   NAME"), HasSubstr("\nteam ")));
}

TEST(Status, ShowsAllDetailsOfOneJob) {
  std::vector<JobEvent> events;
  for (int i = 0; i < 12; ++i) {
    events.push_back({kNow - absl::Minutes(i), "Normal", absl::StrCat("Reason", i), "what happened", i + 1});
  }
  const std::string text = job_text(job_of("digits"), plan_of(), events, kNow);
  EXPECT_THAT(text,
              AllOf(HasSubstr("Running, since 3m"), HasSubstr("4 of 4 running"), HasSubstr("2 running, 0 to 2 wanted"),
                    HasSubstr("epoch 3 of attempt 0, 6 of 6 acknowledged"), HasSubstr("without summers"),
                    HasSubstr("efficiency 97.0 %"), HasSubstr("AllWorkersRun"), HasSubstr("0 of 3")));
  EXPECT_THAT(text, AllOf(HasSubstr("Reason0 "), HasSubstr("Reason9 "), Not(HasSubstr("Reason10"))));
  EXPECT_LT(text.find("Reason9"), text.find("Reason0 "));  // oldest first
}

TEST(Status, NamesTheStrategyWithItsOptions) {
  api::TrainingJob job = job_of("digits");
  job.communication.strategy = api::Strategy::kBlueConnect;
  job.communication.stages = {2, 2};
  job.status.communication.strategy = "blueconnect 2,2";
  const std::string text = job_text(job, std::nullopt, {}, kNow);
  EXPECT_THAT(text, HasSubstr("BlueConnect of stages 2, 2; tensors are summed by blueconnect 2,2"));
  EXPECT_THAT(text, HasSubstr("none: the strategy is BlueConnect"));
  EXPECT_THAT(top_text({}, {job}, kNow), AllOf(HasSubstr("STRATEGY"), HasSubstr("blueconnect 2,2")));
  EXPECT_EQ(top_json({}, {job}, kNow)["jobs"][0]["strategy"], "blueconnect 2,2");
}

TEST(Status, NamesTheClassOfBits) {
  api::TrainingJob job = job_of("digits");
  EXPECT_THAT(job_text(job, std::nullopt, {}, kNow), ContainsRegex("\nBits +-\n"));
  job.communication.bits = api::Bits::kSchedule;
  EXPECT_THAT(job_text(job, std::nullopt, {}, kNow), ContainsRegex("\nBits +Schedule\n"));
  job.status.communication.bits = "RankOrder";
  EXPECT_THAT(job_text(job, std::nullopt, {}, kNow), ContainsRegex("\nBits +RankOrder\n"));
  EXPECT_THAT(top_text({}, {job}, kNow), AllOf(HasSubstr("BITS"), HasSubstr("RankOrder")));
  EXPECT_EQ(top_json({}, {job}, kNow)["jobs"][0]["bits"], "RankOrder");
}

TEST(Explain, TellsWhatTheOtherClassOfBitsBuys) {
  api::ReductionPlan plan = plan_of();
  EXPECT_THAT(to_text(explain_job(plan).value()), Not(HasSubstr("\nBits"))) << "the plan of an older operator";
  plan.spec.bits = "RankOrder";
  EXPECT_THAT(to_text(explain_job(plan).value()), HasSubstr("\nBits       RankOrder\n"));
  EXPECT_EQ(to_json(explain_job(plan).value())["other_bits"], nullptr);
  plan.spec.other_bits = {"Schedule", "ring", 0.0012, 0.0019};
  const ExplainedJob job = explain_job(plan).value();
  EXPECT_THAT(to_text(job), HasSubstr("\nBits       RankOrder; class Schedule would take 1.2 ms a step instead of "
                                      "1.9 ms (ring)\n"));
  const nlohmann::json json = to_json(job);
  EXPECT_EQ(json["bits"], "RankOrder");
  EXPECT_EQ(json["other_bits"]["bits"], "Schedule");
  EXPECT_EQ(json["other_bits"]["strategy"], "ring");
  EXPECT_EQ(json["other_bits"]["seconds"], 0.0012);
  EXPECT_EQ(json["other_bits"]["instead_of_seconds"], 0.0019);
}

TEST(Explain, ShowsTheTensorsOfEachStrategy) {
  api::ReductionPlan plan = plan_of();
  EXPECT_THAT(to_text(explain_job(plan).value()), Not(HasSubstr("Strategy"))) << "the plan of an older operator";
  plan.spec.strategy = "summers, ring";
  plan.spec.strategies = {{"summers", 1, 2048}, {"ring", 2, 1048576}};
  const ExplainedJob job = explain_job(plan).value();
  EXPECT_THAT(to_text(job), HasSubstr("\nStrategy   1 tensor of 2.00 KiB by summers; 2 tensors of 1.00 MiB by ring\n"));
  EXPECT_EQ(to_json(job)["strategies"][1]["tensors"], 2);
  EXPECT_THAT(to_text(job), Not(HasSubstr("since summers sum no tensor")));
  plan.spec.strategies = {{"ring", 2, 1048576}};
  EXPECT_THAT(to_text(explain_job(plan).value()), HasSubstr("no gain, since summers sum no tensor"));
}

TEST(Explain, ShowsTheBoundOfTheStrategiesInForce) {
  api::ReductionPlan plan = plan_of();
  plan.spec.strategies = {{"ring", 2, 1048576}, {"summers", 0, 0}};
  plan.spec.bound_seconds = plan.spec.bound_without_summers_seconds = 0.096;
  const ExplainedJob job = explain_job(plan).value();
  EXPECT_EQ(job.limit, JobLimit::kSchedules);
  EXPECT_EQ(job.seconds, 0.096);
  EXPECT_THAT(to_text(job), AllOf(HasSubstr("\nBound      96 ms a step, by the strategies in force\n"),
                                  HasSubstr("\nLimit      the busiest link of each strategy\n"),
                                  HasSubstr("summer: helps only the tensors"), Not(HasSubstr("as planned")),
                                  Not(HasSubstr("binds"))));
  const nlohmann::json json = to_json(job);
  EXPECT_EQ(json["limit"], "schedules");
  EXPECT_EQ(json["bound_seconds"], 0.096);
  for (const nlohmann::json& machine : json["machines"]) EXPECT_EQ(machine["binds"], false);
}

TEST(Status, NamesMissingParts) {
  api::TrainingJob fresh;
  fresh.meta.name = "alpha";
  const std::string text = job_text(fresh, std::nullopt, {}, kNow);
  EXPECT_THAT(text, AllOf(HasSubstr("is the operator running?"), HasSubstr("none wanted"),
                          HasSubstr("No recent events"), Not(HasSubstr("Plan"))));
}

TEST(Status, ReadsEventsOfBothKinds) {
  const JobEvent old_kind = parse_event(nlohmann::json::parse(
      R"({"type": "Warning", "reason": "Failed", "message": "why", "count": 3, "lastTimestamp": "2027-01-15T08:00:00Z",
          "firstTimestamp": "2027-01-15T07:00:00Z", "eventTime": null})"));
  EXPECT_EQ(old_kind.count, 3);
  EXPECT_EQ(old_kind.last, absl::FromUnixSeconds(1'800'000'000));
  const JobEvent bare = parse_event(nlohmann::json::parse(R"({"count": "many"})"));
  EXPECT_EQ(bare.count, 1);
  EXPECT_EQ(bare.last, absl::InfinitePast());
}

TEST(Explain, ShowsCompressionAndFusionIfTheJobSetsThem) {
  EXPECT_EQ(gradients_text({}, {}), "");
  EXPECT_EQ(
      gradients_text({.compression = api::Compression::kFp16, .fusion_bytes = 4194304}, {}),
      "Gradients  sent as FP16, those of at most 4.00 MiB in packs of more, unless the script chooses otherwise\n");
  EXPECT_EQ(gradients_text({.fusion_bytes = api::kFuseAll}, {}),
            "Gradients  all in one tensor of each type, unless the script chooses otherwise\n");
  EXPECT_EQ(gradients_json({}), nlohmann::json::parse(R"({"compression": "None", "fusion_bytes": null})"));
  EXPECT_EQ(gradients_json({.fusion_bytes = api::kFuseAll})["fusion_bytes"], "inf");
  EXPECT_EQ(gradients_text({.fusion_bytes = api::kFuseAuto}, {}),
            "Gradients  small ones in packs of a size that rank 0 chooses, unless the script chooses otherwise\n");
  EXPECT_EQ(gradients_json({.fusion_bytes = api::kFuseAuto})["fusion_bytes"], "auto");
}

TEST(Explain, ShowsTheBytesThatCompressionSaves) {
  api::ReductionPlan plan = plan_of();  // of an operator that does not know dense bytes
  EXPECT_EQ(gradients_text({}, plan.spec), "");
  EXPECT_EQ(to_json(explain_job(plan).value())["dense_bytes_per_step"], 80'000'000);
  plan.spec.dense_bytes_per_step = 160'000'000;
  const std::string saved = "bytes per step: 76.29 MiB instead of 152.59 MiB (2.00 times fewer)\n";
  EXPECT_EQ(gradients_text({}, plan.spec), "Gradients  " + saved);
  EXPECT_EQ(gradients_text({.compression = api::Compression::kFp16}, plan.spec),
            "Gradients  sent as FP16, unless the script chooses otherwise; " + saved);
  EXPECT_EQ(to_json(explain_job(plan).value())["dense_bytes_per_step"], 160'000'000);
  EXPECT_THAT(job_text(job_of("digits"), plan, {}, kNow), HasSubstr("76.29 MiB instead of 152.59 MiB"));
}

TEST(Explain, ShowsTheTransportsBetweenMembers) {
  api::ReductionPlan plan = plan_of();
  EXPECT_THAT(to_text(explain_job(plan).value()), Not(HasSubstr("Transports")))
      << "the plan of an older operator has no transports";
  for (api::PlanMember& member : plan.spec.members) member.transports = {absl::StrCat("shm:", member.node), "tcp"};
  EXPECT_THAT(to_text(explain_job(plan).value()), HasSubstr("\nTransports tcp: all\n"));
  plan.spec.members[5].transports = {"shm:n0", "tcp"};
  EXPECT_THAT(to_text(explain_job(plan).value()), HasSubstr("\nTransports shm: worker-0 – summer-1; tcp: the rest\n"));
  // There are 6 pairs of workers, and 8 pairs of a worker and a summer.
  const nlohmann::json json = to_json(explain_job(plan).value())["transports"];
  EXPECT_EQ(json[0].dump(), R"({"first":["worker-0 – summer-1"],"pairs":1,"transport":"shm"})");
  EXPECT_EQ(json[1]["pairs"], 13);
  plan.spec.members[1].transports = {"tcp", "rdma"};
  plan.spec.members[2].transports = {"rdma", "tcp"};
  plan.spec.members[3].transports = {"rdma"};
  EXPECT_THAT(to_text(explain_job(plan).value()), AllOf(HasSubstr("; rdma: worker-2 → worker-1, "),
                                                        HasSubstr("worker-1 – worker-3, worker-2 – worker-3; tcp"),
                                                        HasSubstr("none in common: worker-0 – worker-3, ")))
      << "the connecting side uses its own order";
}

TEST(Explain, ShowsTheWorkOfEachMachineAndTheGainFromAnotherSummer) {
  const auto job = explain_job(plan_of());
  ASSERT_TRUE(job.ok()) << job.status();
  // The figures of the model for n = 4 equal workers and k = 2: T = 2n(n-1)M / ((n² + kn - 2k) B).
  const double bound = 8 * 24.0 * 80e6 / 20 / 10e9;
  EXPECT_NEAR(job->seconds, bound, bound * 1e-6);
  EXPECT_NEAR(job->plan.spec.bound_seconds, bound, bound * 1e-9);
  EXPECT_EQ(job->limit, JobLimit::kAllLinks);
  EXPECT_EQ(job->one_more_bits_per_second, 10e9);
  EXPECT_NEAR(job->one_more_bound_seconds, 8 * 24.0 * 80e6 / 22 / 10e9, 1e-9);
  double shares = 0;
  for (const ExplainedMachine& machine : job->machines) shares += machine.share;
  EXPECT_NEAR(shares, 1, 1e-6);
  const std::string text = to_text(*job);
  EXPECT_THAT(text, AllOf(HasSubstr("TrainingJob team/digits, epoch 3"), HasSubstr("summer-1"), HasSubstr("n5"),
                          HasSubstr("all links together"), HasSubstr("9.09 % less"), HasSubstr("1.25 times as long"),
                          HasSubstr("efficiency 97.0 %"), HasSubstr("binds")));
  const nlohmann::json json = to_json(*job);
  EXPECT_EQ(json["machines"].size(), 6u);
  EXPECT_EQ(json["limit"], "all_links");
  EXPECT_EQ(json["machines"][4]["role"], "summer");
}

TEST(Explain, TensorsThatAreSentOnceAreNotPartOfAStep) {
  api::ReductionPlan plan = plan_of();
  const auto without = explain_job(plan);
  // As many bytes of parameters are broadcast at the start.
  for (api::PlanMember& member : plan.spec.members) {
    member.owned_bytes *= 2;
    member.traffic_bytes *= 2;
  }
  const auto with = explain_job(plan);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ(to_text(*with), to_text(*without));
}

TEST(Explain, WithoutALinksSpeedThereIsNoBoundButAdvice) {
  api::ReductionPlan plan = plan_of();
  plan.spec.members[1].bandwidth_assumed = true;
  plan.spec.bound_seconds = plan.spec.bound_without_summers_seconds = 0;
  plan.status.efficiency = 0;
  plan.status.efficiency_basis = "unknown_bandwidth";
  const auto job = explain_job(plan);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->limit, JobLimit::kUnknown);
  EXPECT_THAT(to_text(*job), AllOf(HasSubstr("Bound      unknown: the network speed of worker-1 on n1 is unknown"),
                                   HasSubstr("gleaner.dev/bandwidth=25Gbit"), HasSubstr("efficiency unknown"),
                                   Not(HasSubstr("binds")), Not(HasSubstr("Limit")), Not(HasSubstr("nan"))));
  EXPECT_EQ(to_json(*job)["limit"], "unknown");
  EXPECT_EQ(to_json(*job)["machines"][1]["bandwidth_assumed"], true);
  EXPECT_THAT(job_text(job_of("digits"), plan, {}, kNow), HasSubstr("label their nodes gleaner.dev/bandwidth=25Gbit"));
}

TEST(Explain, NamesASlowSummer) {
  api::ReductionPlan plan = plan_of();
  EXPECT_THAT(to_text(explain_job(plan).value()), Not(HasSubstr("low")));
  plan.spec.members[5].owned_bytes = plan.spec.members[5].traffic_bytes = 0;
  plan.spec.members[5].slow = "a step takes 510.0 ms with it and 11.0 ms without it";
  const auto job = explain_job(plan);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(to_text(*job), AllOf(HasSubstr("Slow       summer-1: a step takes 510.0 ms with it"),
                                   testing::ContainsRegex("summer-1[^\n]*slow")));
  EXPECT_EQ(to_json(*job)["machines"][5]["slow"], plan.spec.members[5].slow);
  EXPECT_NEAR(job->one_more_bound_seconds, 8 * 24.0 * 80e6 / 20 / 10e9, 1e-9)
      << "one more summer beside the one that is in use";
}

TEST(Explain, ShowsThePacksThatRank0HasChosen) {
  api::ReductionPlan plan = plan_of();
  EXPECT_THAT(to_text(explain_job(plan).value()), Not(HasSubstr("Packs")));
  plan.status.packs = "gradients of at most 256.00 KiB; they are predicted";
  EXPECT_THAT(to_text(explain_job(plan).value()), HasSubstr("Packs      gradients of at most 256.00 KiB; they are "));
  EXPECT_EQ(to_json(explain_job(plan).value())["packs"], plan.status.packs);
}

TEST(Explain, GivesTheReasonForAMissingEfficiency) {
  api::ReductionPlan plan = plan_of();
  plan.status.efficiency = 0;
  plan.status.efficiency_basis = "latency";
  EXPECT_THAT(to_text(explain_job(plan).value()), AllOf(HasSubstr("latency-bound"), Not(HasSubstr("efficiency"))));
  plan.status.efficiency_basis = "bandwidth_too_low";
  EXPECT_THAT(to_text(explain_job(plan).value()), HasSubstr("a link is faster than its stated bandwidth"));
}

TEST(Explain, NamesAWorkerWhoseLinkIsTooSlow) {
  const auto job = explain_job(plan_of(2e9));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->limit, JobLimit::kSlowestWorker);
  EXPECT_EQ(job->machines[job->binding].member.name, "worker-0");
  EXPECT_THAT(to_text(*job), AllOf(HasSubstr("Limit      worker-0 at 2 Gbit/s"), HasSubstr("no gain")));
}

TEST(Explain, CountsLargerPushes) {
  api::ReductionPlan plan = plan_of();
  plan.spec.push_bytes_per_step = 160'000'000;
  plan::Fleet fleet{std::vector<double>(4, 10e9), {10e9, 10e9, 10e9}, 2};
  const double with_one_more = plan::bound_seconds(fleet, 80e6);
  fleet.summer_bits_per_second.pop_back();
  plan.spec.bound_seconds = plan::bound_seconds(fleet, 80e6);
  const auto job = explain_job(plan);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_DOUBLE_EQ(job->one_more_bound_seconds, with_one_more);
  EXPECT_EQ(job->limit, JobLimit::kAllLinks);
}

TEST(Explain, RefusesAMalformedPlan) {
  api::ReductionPlan empty = plan_of();
  empty.spec.bytes_per_step = 0;
  EXPECT_EQ(explain_job(empty).status().code(), absl::StatusCode::kFailedPrecondition);
  api::ReductionPlan broken = plan_of();
  broken.spec.members[1].bits_per_second = 0;
  EXPECT_EQ(explain_job(broken).status().code(), absl::StatusCode::kInvalidArgument);
  broken.spec.members.clear();
  EXPECT_EQ(explain_job(broken).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Explain, OneWorkerMovesNothing) {
  api::ReductionPlan plan = plan_of();
  plan.spec.members.resize(1);
  plan.spec.members[0].traffic_bytes = 0;
  plan.spec.bound_seconds = plan.spec.bound_without_summers_seconds = 0;
  const auto job = explain_job(plan);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(to_text(*job), AllOf(HasSubstr("nothing has to move"), Not(HasSubstr("binds")), Not(HasSubstr("nan"))));
}

TEST(Top, SortsBySpareBandwidthAndGivesReasonsAgainstNodes) {
  api::NodeProfile slow = placement::spare_profile("slow");
  slow.status.spare.bits_per_second = 2e9;
  api::NodeProfile stale = placement::spare_profile("stale");
  stale.status.observed_time = kNow - absl::Minutes(10);
  placement::Machine bare;
  bare.name = "bare";
  Machines machines;
  for (placement::Machine machine : {bare, placement::machine_of(slow), placement::machine_of(stale)}) {
    machines.push_back(std::make_shared<const placement::Machine>(std::move(machine)));
  }
  api::TrainingJob other = job_of("other"), waits = job_of("waits");
  other.status.communication.goodput = "1.5 GB/s";
  waits.status.workers_ready = 0;
  const std::string text = top_text(machines, {job_of("digits"), waits, other}, kNow);
  EXPECT_LT(text.find("stale"), text.find("slow"));
  EXPECT_LT(text.find("slow"), text.find("bare"));
  EXPECT_THAT(text, AllOf(HasSubstr("no: its profile is 600 s old"), HasSubstr("no: no agent has reported the machine"),
                          HasSubstr("10.0 of 32"), HasSubstr("2 Gbit/s\n"), Not(HasSubstr("waits"))));
  EXPECT_LT(text.find("team/other"), text.find("team/digits"));
  EXPECT_THAT(top_text({}, {}, kNow), AllOf(HasSubstr("No nodes"), HasSubstr("No job")));
  const nlohmann::json json = top_json(machines, {other}, kNow);
  EXPECT_EQ(json["nodes"][0]["node"], "stale");
  EXPECT_EQ(json["nodes"][1]["fits"], true);
  EXPECT_EQ(json["jobs"][0]["goodput"], "1.5 GB/s");
}

TEST(Logs, ShowsTheCommandsThatPrintThem) {
  placement::Pod worker, foreign;
  worker.key = "team/digits-worker-0-r1";
  worker.job = "team/digits";
  foreign.key = "team/other-worker-0";
  foreign.job = "team/other";
  const std::string text = logs_text(job_of("digits"), {worker, foreign});
  EXPECT_THAT(text,
              AllOf(HasSubstr("kubectl -n team logs -l gleaner.dev/job=digits,gleaner.dev/role=worker --prefix"),
                    HasSubstr("logs -f digits-worker-0-r1\n"), HasSubstr("gleaner-operator"), Not(HasSubstr("other"))));
  EXPECT_THAT(logs_text(job_of("digits"), {}), HasSubstr("no pods now"));
}

TEST(Failures, GiveAdvice) {
  const auto said = [](const absl::Status& status, const std::string& name) {
    return std::string(explain_failure(status, kube::training_jobs(), "team", name).message());
  };
  EXPECT_THAT(said(absl::NotFoundError("trainingjobs.gleaner.dev \"digits\" not found"), "digits"),
              HasSubstr("there is no TrainingJob 'digits' in namespace 'team'"));
  EXPECT_THAT(
      said(absl::NotFoundError("GET /apis/gleaner.dev/v1alpha1/namespaces/team/trainingjobs/digits: 404"), "digits"),
      HasSubstr("is Gleaner installed"));
  EXPECT_THAT(said(absl::NotFoundError("404 page not found"), ""), HasSubstr("trainingjobs.gleaner.dev"));
  EXPECT_THAT(said(absl::PermissionDeniedError("User \"x\" cannot list resource"), ""), HasSubstr("no access: User"));
  EXPECT_THAT(said(absl::UnauthenticatedError("Unauthorized"), ""), HasSubstr("expired"));
  EXPECT_THAT(said(absl::UnavailableError("refused"), ""), HasSubstr("can't read trainingjobs: refused"));
}

}  // namespace
}  // namespace gleaner::cli
