// Tests of the created pods: they keep the user's template, and have all settings that a member needs.
#include "operator/reconcile/pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::reconcile {
namespace {

using nlohmann::json;

api::TrainingJob job() {
  api::TrainingJob job;
  job.meta.name = "digits";
  job.meta.ns = "team";
  job.meta.uid = "u1";
  job.workers.replicas = 3;
  job.workers.local_ranks = 2;
  job.workers.pod_template = json::parse(R"json({
    "metadata": {"labels": {"team": "vision", "gleaner.dev/job": "forged"}, "annotations": {"note": "x"}},
    "spec": {"restartPolicy": "OnFailure", "tolerations": [{"key": "gpu"}],
             "volumes": [{"name": "data", "emptyDir": {}}],
             "containers": [{"name": "main", "image": "train:1", "env": [{"name": "A", "value": "$(GLEANER_WORKER)"}]},
                            {"name": "side", "image": "log:1"}]}})json");
  return job;
}

const PodSettings kSettings{"coordinator.gleaner-system.svc:7070", "gleaner:1", "gleaner-summer"};

std::string environment(const json& container, const std::string& name) {
  for (const json& variable : container["env"]) {
    if (variable["name"] == name) return variable.value("value", "(from a field)");
  }
  return "(none)";
}

TEST(WorkerPod, KeepsTheTemplateAndAddsIdentity) {
  const json pod = *worker_pod(job(), 1, kSettings, {{"zone"}, {"rack", "row"}});
  EXPECT_EQ(pod["metadata"]["name"], "digits-worker-1");
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "vision");
  EXPECT_EQ(pod["metadata"]["labels"]["gleaner.dev/job"], "digits") << "ours win";
  EXPECT_EQ(pod["metadata"]["labels"]["gleaner.dev/index"], "1");
  EXPECT_EQ(pod["metadata"]["annotations"]["note"], "x");
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], "u1");
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["controller"], true);
  const json& spec = pod["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["hostname"], "digits-worker-1");
  EXPECT_EQ(spec["subdomain"], "digits");
  EXPECT_EQ(spec["tolerations"][0]["key"], "gpu");
  EXPECT_EQ(spec["schedulingGates"][0]["name"], "gleaner.dev/gang");
  EXPECT_EQ(spec["volumes"].size(), 2U);
  const json& near = spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(near.size(), 3U);
  EXPECT_EQ(near[0]["podAffinityTerm"]["topologyKey"], "zone");
  EXPECT_EQ(near[2]["podAffinityTerm"]["topologyKey"], "row");
  EXPECT_GT(near[1]["weight"], near[0]["weight"]) << "a rack is nearer than a zone";
  for (const json& container : spec["containers"]) {
    EXPECT_EQ(environment(container, "GLEANER_COORDINATOR"), "coordinator.gleaner-system.svc:7070");
    EXPECT_EQ(environment(container, "GLEANER_JOB"), "team/digits/0");
    EXPECT_EQ(environment(container, "GLEANER_WORKER"), "1");
    EXPECT_EQ(environment(container, "GLEANER_LOCAL_SIZE"), "2");
    EXPECT_EQ(environment(container, "GLEANER_ADDRESS"), "$(GLEANER_POD_IP):7071");
    EXPECT_EQ(container["volumeMounts"].back()["mountPath"], "/var/run/gleaner");
  }
  EXPECT_EQ(environment(spec["containers"][0], "A"), "$(GLEANER_WORKER)");
  EXPECT_EQ(spec["containers"][0]["env"].back()["name"], "A")
      << "the user's variables follow Gleaner's, and may refer to them";
}

TEST(WorkerPod, KeepsItsGpusAndLeavesLocalRanksToItsCommand) {
  api::TrainingJob training = job();
  const json resources = {{"limits", {{"nvidia.com/gpu", 2}, {"memory", "8Gi"}}}};
  training.workers.pod_template["spec"]["containers"][0]["resources"] = resources;
  const json container = (*worker_pod(training, 0, kSettings))["spec"]["containers"][0];
  EXPECT_EQ(container["resources"], resources);
  EXPECT_EQ(environment(container, "GLEANER_LOCAL_SIZE"), "2");
  for (const json& variable : container["env"]) EXPECT_NE(variable["name"], "GLEANER_LOCAL_RANK");
}

TEST(WorkerPod, TellsCompressionAndFusionUnlessTheTemplateDoes) {
  api::TrainingJob training = job();
  const auto told = [&](const char* name) {
    return environment((*worker_pod(training, 0, kSettings))["spec"]["containers"][0], name);
  };
  EXPECT_EQ(told("GLEANER_COMPRESSION"), "(none)");
  EXPECT_EQ(told("GLEANER_FUSION_BYTES"), "(none)");
  training.communication.compression = api::Compression::kBf16;
  training.communication.fusion_bytes = 4194304;
  EXPECT_EQ(told("GLEANER_COMPRESSION"), "bf16");
  EXPECT_EQ(told("GLEANER_FUSION_BYTES"), "4194304");
  training.communication.fusion_bytes = api::kFuseAll;
  EXPECT_EQ(told("GLEANER_FUSION_BYTES"), "inf");
  training.communication.fusion_bytes = api::kFuseAuto;
  EXPECT_EQ(told("GLEANER_FUSION_BYTES"), "auto");
  training.workers.pod_template["spec"]["containers"][0]["env"] = {
      {{"name", "GLEANER_COMPRESSION"}, {"value", "none"}}};
  const json container = (*worker_pod(training, 0, kSettings))["spec"]["containers"][0];
  EXPECT_EQ(container["env"].back()["value"], "none") << "of two variables of one name the kubelet takes the last";
}

TEST(WorkerPod, HasATokenForGleanersAudience) {
  const json pod = *worker_pod(job(), 0, kSettings);
  const json& source = pod["spec"]["volumes"].back()["projected"]["sources"][0]["serviceAccountToken"];
  EXPECT_EQ(source["audience"], "gleaner.dev");
  EXPECT_EQ(source["path"], "token");
}

TEST(WorkerPod, TheAttemptIsInNameLabelAndSession) {
  api::TrainingJob again = job();
  again.status.attempt = 4;
  const json pod = *worker_pod(again, 2, kSettings);
  EXPECT_EQ(pod["metadata"]["name"], "digits-worker-2-r4");
  EXPECT_EQ(pod["metadata"]["labels"]["gleaner.dev/attempt"], "4");
  EXPECT_EQ(environment(pod["spec"]["containers"][0], "GLEANER_JOB"), "team/digits/4");
  EXPECT_EQ(pod["spec"]["hostname"], "digits-worker-2") << "the hostname does not contain the attempt";
}

TEST(WorkerPod, ATemplateOfAnotherShapeIsAnError) {
  for (const char* spec : {R"({"containers": ["main"]})",
                           R"({"containers": [{"name": "a", "env": {"x": 1}}], "affinity": {"podAffinity": 3}})",
                           R"({"containers": [{"name": "a"}], "affinity": {"podAffinity": "near"}})", R"([1, 2])"}) {
    api::TrainingJob odd = job();
    odd.workers.pod_template["spec"] = json::parse(spec);
    EXPECT_TRUE(absl::IsInvalidArgument(worker_pod(odd, 0, kSettings).status())) << spec;
  }
}

TEST(SummerPod, IsRestricted) {
  const json pod = summer_pod(job(), 0, {"s7", 2.5e9}, kSettings);
  EXPECT_EQ(pod["metadata"]["annotations"]["kubernetes.io/egress-bandwidth"], "2500000000");
  const json& spec = pod["spec"];
  EXPECT_EQ(spec["priorityClassName"], "gleaner-summer");
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  const json& container = spec["containers"][0];
  const json& apart = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
  EXPECT_EQ(apart["labelSelector"]["matchLabels"]["gleaner.dev/job"], "digits");
  EXPECT_EQ(apart["topologyKey"], "kubernetes.io/hostname");
  EXPECT_EQ(container["resources"]["requests"]["gleaner.dev/summer"], "1");
  EXPECT_EQ(container["resources"]["limits"]["gleaner.dev/summer"], "1");
  EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
  EXPECT_EQ(spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"]
                ["matchFields"][0]["values"][0],
            "s7");
}

TEST(Transports, NothingIsAddedWithoutTransportsInTheInstallation) {
  const json worker = *worker_pod(job(), 0, kSettings);
  EXPECT_EQ(environment(worker["spec"]["containers"][0], "GLEANER_TRANSPORTS"), "(none)");
  EXPECT_EQ(environment(worker["spec"]["containers"][0], "GLEANER_SHM_DIR"), "(none)");
  EXPECT_FALSE(worker["spec"]["containers"][0].contains("resources"));
  EXPECT_EQ(worker["spec"]["volumes"].size(), 2u);
}

TEST(Transports, MachinesShareTheirDirectoryAndTheirRdmaDevices) {
  PodSettings settings = kSettings;
  settings.shm_host_path = "/dev/shm";
  settings.rdma_resource = "rdma/hca";
  const json worker = *worker_pod(job(), 0, settings);
  const json summer = summer_pod(job(), 0, {"s7", 0}, settings);
  for (const json& spec : {worker["spec"], summer["spec"]}) {
    const json& container = spec["containers"][0];
    EXPECT_EQ(environment(container, "GLEANER_SHM_DIR"), container["volumeMounts"].back()["mountPath"]);
    EXPECT_EQ(container["volumeMounts"].back()["name"], spec["volumes"].back()["name"]);
    EXPECT_EQ(spec["volumes"].back()["hostPath"]["path"], "/dev/shm");
    EXPECT_EQ(container["resources"]["limits"]["rdma/hca"], "1");
    EXPECT_EQ(container["resources"]["requests"]["rdma/hca"], "1");
    EXPECT_EQ(container["securityContext"]["capabilities"]["add"], json::array({"IPC_LOCK"}));
  }
  EXPECT_EQ(summer["spec"]["containers"][0]["securityContext"]["capabilities"]["drop"], json::array({"ALL"}));
  const json& side = worker["spec"]["containers"][1];
  EXPECT_FALSE(side.contains("resources")) << "only the first container trains";
}

TEST(Transports, SettingsOfTheTemplateStay) {
  PodSettings settings = kSettings;
  settings.rdma_resource = "rdma/hca";
  api::TrainingJob own = job();
  json& container = own.workers.pod_template["spec"]["containers"][0];
  container["resources"] = {{"limits", {{"rdma/hca", "4"}, {"nvidia.com/gpu", 8}}}, {"requests", {{"rdma/hca", "4"}}}};
  container["securityContext"] = {{"capabilities", {{"add", {"IPC_LOCK", "SYS_NICE"}}}}};
  const json made = (*worker_pod(own, 0, settings))["spec"]["containers"][0];
  EXPECT_EQ(made["resources"], container["resources"]);
  EXPECT_EQ(made["securityContext"], container["securityContext"]);
}

TEST(Transports, AJobChoosesItsTransports) {
  PodSettings settings = kSettings;
  settings.shm_host_path = "/dev/shm";
  settings.rdma_resource = "rdma/hca";
  const std::vector<std::pair<api::Transport, std::string>> expected = {
      {api::Transport::kTcp, "tcp"}, {api::Transport::kShm, "shm"}, {api::Transport::kRdma, "shm,rdma"}};
  for (const auto& [transport, variable] : expected) {
    api::TrainingJob wanted = job();
    wanted.communication.transport = transport;
    const json spec = (*worker_pod(wanted, 0, settings))["spec"];
    EXPECT_EQ(environment(spec["containers"][0], "GLEANER_TRANSPORTS"), variable);
    EXPECT_EQ(spec["containers"][0].contains("resources"), transport == api::Transport::kRdma);
    EXPECT_EQ(spec["volumes"].size(), transport == api::Transport::kTcp ? 2u : 3u);
    const json summer = summer_pod(wanted, 0, {"s7", 0}, settings)["spec"]["containers"][0];
    EXPECT_EQ(environment(summer, "GLEANER_TRANSPORTS"), variable);
  }
}

TEST(SummerPod, HasItsLimitsAsFlags) {
  PodSettings settings = kSettings;
  settings.summer_yield_above = 0.8;
  const auto option = [](const json& pod, const std::string& name) -> std::string {
    const std::vector<std::string> words = pod["spec"]["containers"][0]["args"];
    const auto found = std::find(words.begin(), words.end(), name);
    return found == words.end() ? "none" : *std::next(found);
  };
  const json limited = summer_pod(job(), 0, {"s7", 2.5e9}, settings);
  EXPECT_EQ(option(limited, "--bandwidth"), "2500000000");
  EXPECT_EQ(option(limited, "--pace"), "plan");
  EXPECT_EQ(option(limited, "--yield-above"), "0.8");
  const json unlimited = summer_pod(job(), 0, {"s7", 0}, kSettings);
  EXPECT_EQ(option(unlimited, "--pace"), "none");
  EXPECT_EQ(option(unlimited, "--yield-above"), "none");
}

}  // namespace
}  // namespace gleaner::reconcile
