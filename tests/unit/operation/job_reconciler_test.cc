// Tests of the reconciler with a real API server, in which a test acts as the scheduler and as the kubelets.
#include "operator/service/job_reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/service/object_repair.h"
#include "tests/unit/kube/api_server.h"
#include "tests/unit/operation/fakes.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;
using testing::HasSubstr;

kube::Resource webhooks() {
  return {"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
          false};
}

// Returns a webhook without a server, which must admit all objects of this kind in the namespace.
json absent_webhook(const std::string& ns, const std::string& plural) {
  return {{"metadata", {{"name", ns}}},
          {"webhooks", json::array({{{"name", "absent.gleaner.dev"},
                                     {"clientConfig", {{"url", "https://127.0.0.1:1/"}}},
                                     {"rules", json::array({{{"apiGroups", {"*"}},
                                                             {"apiVersions", {"*"}},
                                                             {"operations", {"CREATE"}},
                                                             {"resources", {plural}}}})},
                                     {"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", ns}}}}},
                                     {"sideEffects", "None"},
                                     {"admissionReviewVersions", {"v1"}}}})}};
}

class JobReconcilerTest : public kube::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(server().install_crds());
    cluster_ = std::make_unique<Cluster>(env(), client(), queue_, repairs_, ns_);
    ASSERT_TRUE(cluster_->wait_synced(absl::Seconds(60)));
    identities_ = std::make_unique<IdentityStore>(env(), client(), ns_, std::vector<std::string>{},
                                                  std::filesystem::temp_directory_path(), find_bootstrap_in(*cluster_));
    begin_operator();
    api::TrainingJob job;
    job.meta.ns = ns_;
    job.meta.name = "digits";
    job.workers.replicas = 2;
    // The server of this test has no admission plugin that sets serviceAccountName.
    job.workers.pod_template = {
        {"spec",
         {{"serviceAccountName", "default"}, {"containers", json::array({{{"name", "main"}, {"image", "train:1"}}})}}}};
    json object = api::to_json(job);
    object.erase("status");
    const auto created = client().create(kube::training_jobs(), object);
    ASSERT_TRUE(created.ok()) << created.status();
    ASSERT_TRUE(kube::eventually([&] { return cluster_->job(key()) != nullptr; }));
  }

  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_TRUE(client().remove(webhooks(), "", ns_, {}).ok());
  }

  // Replaces the reconciler by that of an operator without a memory.
  void begin_operator() {
    reconciler_ = std::make_unique<JobReconciler>(JobReconciler::Parts{env(),
                                                                       client(),
                                                                       *cluster_,
                                                                       sessions_,
                                                                       *identities_,
                                                                       events_,
                                                                       metrics_,
                                                                       [](const std::string&) { return std::nullopt; },
                                                                       {"coordinator:7070", "gleaner:1", "low"}});
  }

  std::string key() const { return absl::StrCat(ns_, "/digits"); }
  std::shared_ptr<const api::TrainingJob> job() { return cluster_->job(key()); }
  std::string message(const char* condition) {
    const api::Condition* found = api::find_condition(job()->status.conditions, condition);
    return found == nullptr ? "" : found->message;
  }
  bool has_reason(const std::string& reason) {
    return std::find(events_.reasons.begin(), events_.reasons.end(), reason) != events_.reasons.end();
  }
  // Reconciles until the condition holds. A failure prints the last error and the job's status.
  testing::AssertionResult reconciled(const std::function<bool()>& condition) {
    absl::Status last;
    const bool held = kube::eventually([&] {
      const kube::Result result = reconciler_->reconcile(key());
      const auto* retry = std::get_if<kube::Retry>(&result);
      last = retry == nullptr ? absl::OkStatus() : retry->why;
      return condition();
    });
    if (held) return testing::AssertionSuccess();
    return testing::AssertionFailure() << last << "\n" << api::to_json(job()->status).dump(2);
  }

  // Plays the scheduler and the kubelet of a pod.
  void bind(const std::string& pod) {
    const json binding = {{"apiVersion", "v1"},
                          {"kind", "Binding"},
                          {"metadata", {{"name", pod}, {"namespace", ns_}}},
                          {"target", {{"kind", "Node"}, {"name", "n1"}}}};
    server().kubectl(absl::StrCat("create --raw /api/v1/namespaces/", ns_, "/pods/", pod, "/binding -f -"),
                     binding.dump());
  }
  void set_status(const std::string& pod, const json& status) {
    const auto patched = client().merge_patch(kube::pods(), ns_, pod, {{"status", status}}, "status");
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  void set_phase(const std::string& pod, const std::string& phase) { set_status(pod, {{"phase", phase}}); }
  // Makes n1, the node of all pods, Ready.
  void make_node() {
    const absl::Status created = client().create(kube::nodes(), {{"metadata", {{"name", "n1"}}}}).status();
    ASSERT_TRUE(created.ok() || absl::IsAlreadyExists(created)) << created;
    const json ready = {{"type", "Ready"}, {"status", "True"}, {"reason", "KubeletReady"}, {"message", "ready"}};
    const auto patched =
        client().merge_patch(kube::nodes(), "", "n1", {{"status", {{"conditions", json::array({ready})}}}}, "status");
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  void set_run_policy(const json& policy) {
    const auto patched =
        client().merge_patch(kube::training_jobs(), ns_, "digits", {{"spec", {{"runPolicy", policy}}}}, "");
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  void run_both_workers() {
    ASSERT_TRUE(reconciled([&] { return absl::StrContains(message("Created"), "all 2 worker pods exist"); }));
    for (const char* pod : {"digits-worker-0", "digits-worker-1"}) {
      bind(pod);
      set_phase(pod, "Running");
    }
    ASSERT_TRUE(reconciled([&] { return job()->status.phase == "Running"; }));
  }

  kube::WorkQueue queue_{*env().clock};
  kube::WorkQueue repairs_{*env().clock};
  std::unique_ptr<Cluster> cluster_;
  FakeSessions sessions_;
  FakeEvents events_;
  prometheus::Registry registry_;
  JobMetrics metrics_{registry_};
  std::unique_ptr<IdentityStore> identities_;
  std::unique_ptr<JobReconciler> reconciler_;
};

TEST_F(JobReconcilerTest, ShowsThatAWebhookIsDownAndGoesOnWhenItIsGone) {
  ASSERT_TRUE(client().create(webhooks(), absent_webhook(ns_, "pods")).ok());
  // The API server takes up the webhook after a while.
  const json pod = {{"metadata", {{"namespace", ns_}, {"name", "probe"}}},
                    {"spec", {{"containers", json::array({{{"name", "main"}, {"image", "train:1"}}})}}}};
  ASSERT_TRUE(kube::eventually([&] {
    const absl::Status created = client().create(kube::pods(), pod).status();
    if (created.ok()) client().remove(kube::pods(), ns_, "probe", {.grace_period_seconds = 0}).IgnoreError();
    return absl::IsInternal(created);
  }));
  ASSERT_TRUE(reconciled([&] { return absl::StrContains(message("Created"), "failed calling webhook"); }));
  EXPECT_THAT(message("Running"), HasSubstr("failed calling webhook"));
  EXPECT_TRUE(has_reason("PodRefused"));
  ASSERT_TRUE(client().remove(webhooks(), "", ns_, {}).ok());
  ASSERT_TRUE(reconciled([&] { return absl::StrContains(message("Created"), "all 2 worker pods exist"); }));
  EXPECT_THAT(message("Running"), HasSubstr("scheduled and started"));
}

TEST_F(JobReconcilerTest, NewLeaderOpensTheSessionOfARunningJob) {
  ASSERT_NO_FATAL_FAILURE(run_both_workers());
  sessions_.job.emplace().epoch = 3;
  sessions_.job->phase = coordinator::JobState::Phase::kRunning;
  ASSERT_TRUE(reconciled([&] { return job()->status.epoch == 3; }));
  sessions_.job.reset();
  sessions_.calls.clear();
  begin_operator();
  for (int i = 0; i < 3; ++i) {
    const kube::Result result = reconciler_->reconcile(key());
    EXPECT_FALSE(std::holds_alternative<kube::Retry>(result)) << std::get<kube::Retry>(result).why;
  }
  EXPECT_THAT(sessions_.calls, testing::Contains(absl::StrCat("add ", key(), "/0")));
}

TEST_F(JobReconcilerTest, NamesObjectsOfOthersAndLeavesThem) {
  const json service = {
      {"metadata", {{"namespace", ns_}, {"name", "digits"}}},
      {"spec", {{"selector", {{"app", "web"}}}, {"ports", json::array({{{"name", "http"}, {"port", 80}}})}}}};
  const json pod = {{"metadata", {{"namespace", ns_}, {"name", "digits-worker-1"}}},
                    {"spec", {{"containers", json::array({{{"name", "main"}, {"image", "web:1"}}})}}}};
  ASSERT_TRUE(client().create(kube::services(), service).ok());
  const auto created = client().create(kube::pods(), pod);
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_TRUE(reconciled([&] {
    return absl::StrContains(message("Created"), absl::StrCat("Service ", ns_, "/digits, which has no owner"));
  }));
  const auto present = client().get(kube::services(), ns_, "digits");
  ASSERT_TRUE(present.ok()) << present.status();
  EXPECT_EQ((*present)["spec"]["selector"], service["spec"]["selector"]);
  EXPECT_FALSE((*present)["metadata"].contains("ownerReferences"));
  ASSERT_TRUE(client().remove(kube::services(), ns_, "digits", {}).ok());
  ASSERT_TRUE(reconciled([&] { return absl::StrContains(message("Created"), "digits-worker-1, which has no owner"); }));
  EXPECT_TRUE(has_reason("ServiceNameTaken") && has_reason("PodNameTaken"));
  ASSERT_TRUE(client().remove(kube::pods(), ns_, "digits-worker-1", {.grace_period_seconds = 0}).ok());
  EXPECT_TRUE(reconciled([&] { return absl::StrContains(message("Created"), "all 2 worker pods exist"); }));
}

TEST_F(JobReconcilerTest, ShowsTheBeginningOfALongRefusal) {
  json variables = json::array();
  for (int i = 0; i < 320; ++i) variables.push_back({{"name", absl::StrCat("bad=name", i)}, {"value", "1"}});
  const json container = {{"name", "main"}, {"image", "train:1"}, {"env", variables}};
  const json containers = {{"containers", json::array({container})}};
  for (const json& change :
       {json{{"runPolicy", {{"suspend", true}}}}, json{{"workers", {{"template", {{"spec", containers}}}}}},
        json{{"runPolicy", {{"suspend", false}}}}}) {
    const auto patched = client().merge_patch(kube::training_jobs(), ns_, "digits", {{"spec", change}});
    ASSERT_TRUE(patched.ok()) << patched.status();
  }
  ASSERT_TRUE(reconciled([&] { return absl::StrContains(message("Created"), "more characters"); }));
  EXPECT_THAT(message("Created"), HasSubstr("bad=name0"));
  EXPECT_TRUE(has_reason("PodRefused"));
}

TEST_F(JobReconcilerTest, PodsThatAKubeletRefusesCount) {
  ASSERT_NO_FATAL_FAILURE(make_node());
  ASSERT_NO_FATAL_FAILURE(set_run_policy({{"backoffLimit", 1}}));
  ASSERT_TRUE(reconciled([&] { return absl::StrContains(message("Created"), "all 2 worker pods exist"); }));
  bind("digits-worker-0");
  set_status("digits-worker-0",
             {{"phase", "Failed"}, {"reason", "OutOfcpu"}, {"message", "Node didn't have enough resource: cpu"}});
  ASSERT_TRUE(reconciled([&] { return job()->status.attempt == 1; }));
  EXPECT_THAT(message("Restarting"), HasSubstr("OutOfcpu, Node didn't have enough resource: cpu"));
  EXPECT_EQ(job()->status.restarts, 1U);
  ASSERT_TRUE(job()->status.next_start_time.has_value());
  EXPECT_GT(*job()->status.next_start_time, absl::Now() + absl::Seconds(10));
  for (int i = 0; i < 3; ++i) reconciler_->reconcile(key());
  EXPECT_EQ(cluster_->pod(absl::StrCat(ns_, "/digits-worker-0-r1")), nullptr) << "whatever wakes the reconciler";
}

TEST_F(JobReconcilerTest, SuccessComesBeforeADeadlineThatPassedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(run_both_workers());
  ASSERT_NO_FATAL_FAILURE(set_run_policy({{"activeDeadlineSeconds", 1}, {"suspend", true}}));
  for (const char* pod : {"digits-worker-0", "digits-worker-1"}) set_phase(pod, "Succeeded");
  ASSERT_TRUE(kube::eventually(
      [&] { return absl::Now() > *job()->status.start_time + absl::Seconds(2) && job()->run_policy.suspend; }));
  begin_operator();
  EXPECT_TRUE(reconciled([&] { return job()->status.phase == "Succeeded"; }));
}

TEST_F(JobReconcilerTest, ASucceededWorkersPodMayBeDeleted) {
  ASSERT_NO_FATAL_FAILURE(run_both_workers());
  set_phase("digits-worker-0", "Succeeded");
  ASSERT_TRUE(reconciled([&] { return job()->status.succeeded_indexes == std::vector<uint32_t>{0}; }));
  ASSERT_TRUE(client().remove(kube::pods(), ns_, "digits-worker-0", {.grace_period_seconds = 0}).ok());
  ASSERT_TRUE(kube::eventually([&] { return cluster_->pod(absl::StrCat(ns_, "/digits-worker-0")) == nullptr; }));
  begin_operator();
  for (int i = 0; i < 3; ++i) reconciler_->reconcile(key());
  EXPECT_EQ(job()->status.attempt, 0U);
  EXPECT_EQ(job()->status.phase, "Running");
  set_phase("digits-worker-1", "Succeeded");
  EXPECT_TRUE(reconciled([&] { return job()->status.phase == "Succeeded"; }));
}

}  // namespace
}  // namespace gleaner::operation
