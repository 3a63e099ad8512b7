#include "cli/cluster/explain_gpus.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace gleaner::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr double kNicSpeed = 100e9;

// Returns the profile of a machine with 8 GPUs at 4 PCIe switches, NVSwitches, and a NIC at the first switch.
api::NodeProfile nvlink_profile(const std::string& node, double nic_bits_per_second = kNicSpeed) {
  api::NodeProfile profile;
  profile.meta.name = node;
  for (int i = 0; i < 8; ++i) {
    api::Gpu& gpu = profile.status.gpus.emplace_back();
    gpu.uuid = absl::StrCat("GPU-", node, "-", i);
    gpu.numa_node = i / 4;
    gpu.pci_switch = absl::StrCat("s", i / 2);
    gpu.nvlink_group = 0;
  }
  api::Nic& nic = profile.status.nics.emplace_back();
  nic.name = absl::StrCat("nic-of-", node);
  nic.pci_address = "0000:3b:00.0";
  nic.pci_switch = "s0";
  nic.numa_node = 0;
  nic.bits_per_second = nic_bits_per_second;
  nic.default_route = true;
  return profile;
}

// Returns the profile of a virtual machine that hides PCIe switches.
api::NodeProfile virtual_profile(const std::string& node, int gpus) {
  api::NodeProfile profile;
  profile.meta.name = node;
  for (int i = 0; i < gpus; ++i) profile.status.gpus.emplace_back().uuid = absl::StrCat("GPU-", i);
  return profile;
}

// Returns a job with worker i on node ni and a summer on n0. Each worker moves twice the gradient.
ExplainedJob explained_job(int workers) {
  ExplainedJob job;
  job.plan.spec.bytes_per_step = 1 << 30;
  job.limit = JobLimit::kAllLinks;
  for (int i = 0; i < workers; ++i) {
    job.machines.push_back({{.name = absl::StrCat("worker-", i),
                             .role = "worker",
                             .node = absl::StrCat("n", i),
                             .bits_per_second = 10e9,
                             .traffic_bytes = 2ull << 30}});
  }
  job.machines.push_back({{.name = "summer-0", .role = "summer", .node = "n0", .traffic_bytes = 1}});
  return job;
}

TEST(ExplainGpus, ShowsBestWayAndTodays) {
  const ExplainedGpus gpus = explain_gpus(explained_job(1), 8, std::vector{nvlink_profile("n0")});
  const std::string text = to_text(gpus);
  EXPECT_THAT(text, StartsWith("GPUs       8 in the machine of worker-0; best way roots: reduce by NVLink"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\n           A step takes 172 ms; the busiest link is NIC nic-of-n0, 100 Gbit/s\n"),
                    HasSubstr("share no PCIe switch with a NIC"),
                    HasSubstr("Gleaner goes reduce-scatter today: 1.07 times as long, 184 ms; the busiest link "
                              "is switch s0 - CPU, 105 Gbit/s *\n"),
                    HasSubstr("Bandwidths with * are assumed"), Not(HasSubstr("Each worker has"))));
  const nlohmann::json json = to_json(gpus);
  EXPECT_EQ(json["gpus_of_worker"], 8);
  ASSERT_EQ(json["machines"].size(), 1u);
  const nlohmann::json& machine = json["machines"][0];
  EXPECT_EQ(machine["workers"], nlohmann::json({"worker-0"}));
  EXPECT_EQ(machine["gpus"], 8);
  EXPECT_EQ(machine["best"]["way"], "roots");
  EXPECT_EQ(machine["best"]["busiest"]["assumed"], false);
  EXPECT_EQ(machine["today"]["way"], "reduce-scatter");
  EXPECT_EQ(machine["today"]["busiest"]["link"], "switch s0 - CPU");
  EXPECT_EQ(machine["today"]["busiest"]["assumed"], true);
  EXPECT_NEAR(machine["times_as_long_today"], 1.07, 0.01);
  EXPECT_THAT(machine["why_not_run"].get<std::string>(), HasSubstr("does not go this way yet"));
}

TEST(ExplainGpus, GroupsAlikeMachines) {
  const ExplainedGpus gpus =
      explain_gpus(explained_job(4), 2,
                   std::vector{nvlink_profile("n0"), virtual_profile("n1", 2), nvlink_profile("n2", kNicSpeed * 1.001),
                               nvlink_profile("n3", kNicSpeed / 4)});
  ASSERT_EQ(gpus.alike.size(), 3u);
  EXPECT_THAT(gpus.alike[0].workers, ElementsAre("worker-0", "worker-2"));
  EXPECT_THAT(gpus.alike[1].workers, ElementsAre("worker-1"));
  EXPECT_THAT(gpus.alike[2].workers, ElementsAre("worker-3"));
  EXPECT_THAT(gpus.left_out, IsEmpty());
  EXPECT_THAT(to_text(gpus), AllOf(HasSubstr("GPUs       8 in each machine of worker-0, worker-2; "),
                                   HasSubstr("\nGPUs       2 in the machine of worker-1; best way copy: "),
                                   HasSubstr("\n           Gleaner goes this way today\n"),
                                   HasSubstr("Each worker has 2 of its machine's GPUs; the ways are those of all 8")));
  EXPECT_FALSE(to_json(gpus)["machines"][1]["unknown"].empty());
}

TEST(ExplainGpus, CountsTrafficOfPlan) {
  ExplainedJob job = explained_job(1);
  job.machines[0].member.traffic_bytes = 1 << 30;
  const std::vector profiles = {nvlink_profile("n0")};
  const auto bytes_of_nic = [&] {
    const nlohmann::json link = to_json(explain_gpus(job, 8, profiles))["machines"][0]["best"]["busiest"];
    return link["link"] == "NIC nic-of-n0" ? link["bytes"].get<double>() : 0;
  };
  EXPECT_EQ(bytes_of_nic(), 1 << 30);
  job.limit = JobLimit::kSchedules;
  EXPECT_EQ(bytes_of_nic(), 2.0 * (1 << 30)) << "the traffic of the plan is not that of schedules";
}

TEST(ExplainGpus, OnlyWorkerUsesNoNic) {
  ExplainedJob job = explained_job(1);
  job.machines[0].member.traffic_bytes = 0;
  api::NodeProfile profile = nvlink_profile("n0");
  // Every GPU has an RDMA NIC at its switch, so each could be a worker of its own.
  profile.status.nics.clear();
  for (int i = 0; i < 8; ++i) {
    profile.status.gpus[i].pci_switch = absl::StrCat("s", i);
    profile.status.nics.push_back({.name = absl::StrCat("ib", i),
                                   .pci_address = "0000:3b:00.0",
                                   .pci_switch = absl::StrCat("s", i),
                                   .bits_per_second = kNicSpeed,
                                   .rdma_device = absl::StrCat("mlx5_", i)});
  }
  const ExplainedGpus gpus = explain_gpus(job, 8, std::vector{profile});
  ASSERT_EQ(gpus.alike.size(), 1u);
  EXPECT_THAT(to_text(gpus),
              AllOf(HasSubstr("best way reduce-scatter"), HasSubstr("goes this way today"), Not(HasSubstr("NIC"))));
}

TEST(ExplainGpus, NamesWorkersWithoutProfile) {
  const ExplainedGpus gpus =
      explain_gpus(explained_job(3), 8, std::vector{nvlink_profile("n0"), virtual_profile("n1", 1)});
  EXPECT_THAT(to_text(gpus),
              HasSubstr("\n           Unknown for worker-1: the NodeProfile of n1 has one GPU; worker-2: "
                        "there is no NodeProfile of n2\n"));
  EXPECT_EQ(to_json(gpus)["left_out"].size(), 2u);
}

TEST(ExplainGpus, NamesMalformedProfile) {
  api::NodeProfile twice = virtual_profile("n1", 2);
  twice.status.gpus[1] = twice.status.gpus[0];
  const ExplainedGpus gpus = explain_gpus(explained_job(2), 8, std::vector{nvlink_profile("n0"), twice});
  EXPECT_THAT(gpus.left_out,
              ElementsAre(StartsWith("worker-1: the NodeProfile of its node: two devices have the name")));
  EXPECT_EQ(gpus.alike.size(), 1u);
}

TEST(ExplainGpus, OmitsSectionWithoutSeveralGpus) {
  const std::vector profiles = {virtual_profile("n0", 1)};
  EXPECT_EQ(to_text(explain_gpus(explained_job(2), 8, profiles)), "");
  EXPECT_EQ(to_json(explain_gpus(explained_job(2), 8, profiles)), nullptr);
  EXPECT_EQ(to_text(explain_gpus(explained_job(1), 1, std::vector{nvlink_profile("n0")})), "");
}

TEST(ExplainGpus, SaysWhyProfilesAreUnread) {
  const ExplainedGpus gpus = explain_gpus(explained_job(1), 8, absl::PermissionDeniedError("no access: forbidden"));
  EXPECT_EQ(to_text(gpus), "GPUs       unknown, since NodeProfiles can't be read: no access: forbidden\n");
  EXPECT_EQ(to_json(gpus)["error"], "no access: forbidden");
}

TEST(ExplainGpus, CountsGpusOfWorker) {
  api::Workers workers;
  workers.local_ranks = 4;
  EXPECT_EQ(gpus_of_worker(workers), 4);
  workers.pod_template =
      nlohmann::json::parse(R"({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}, {}]}})");
  EXPECT_EQ(gpus_of_worker(workers), 8);
  workers.pod_template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1";
  EXPECT_EQ(gpus_of_worker(workers), 1) << "local ranks share a GPU";
}

}  // namespace
}  // namespace gleaner::cli
