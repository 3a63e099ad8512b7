// Tests the client against a real API server: every call, every status code, and a frozen or foreign server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/kube/client.h"
#include "common/kube/object.h"
#include "tests/unit/kube/api_server.h"

namespace gleaner::kube {
namespace {

using testing::HasSubstr;

class ClientTest : public ServerTest {
 protected:
  // Returns the name of the user as which the server authenticates the client.
  std::string whoami(Client& client) {
    const Resource reviews{"authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", false};
    const auto review = client.create(
        reviews,
        {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}, {"metadata", Object::object()}});
    return review.ok() ? text_at(*review, {"status", "userInfo", "username"}) : review.status().ToString();
  }
};

TEST_F(ClientTest, CreatesReadsReplacesAndRemoves) {
  const auto made = client().create(config_maps(), config_map("a", "1"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(uid_of(*made).empty());
  EXPECT_FALSE((*made)["metadata"].contains("managedFields"));
  auto read = client().get(config_maps(), ns_, "a");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *made);

  Object changed = *read;
  changed["data"]["value"] = "2";
  const auto replaced = client().replace(config_maps(), changed);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_TRUE(absl::IsAborted(client().replace(config_maps(), changed).status())) << "an old resource version";
  const auto merged = client().merge_patch(config_maps(), ns_, "a", {{"data", {{"more", "3"}}}});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ((*merged)["data"], (Object{{"value", "2"}, {"more", "3"}}));

  EXPECT_EQ(client().remove(config_maps(), ns_, "a", {.uid = "another-uid"}), absl::OkStatus())
      << "an object with another UID counts as deleted";
  EXPECT_TRUE(client().get(config_maps(), ns_, "a").ok()) << "the object with this UID must stay";
  EXPECT_TRUE(client().remove(config_maps(), ns_, "a", {.uid = uid_of(*made)}).ok());
  EXPECT_TRUE(absl::IsNotFound(client().get(config_maps(), ns_, "a").status()));
  EXPECT_TRUE(client().remove(config_maps(), ns_, "a", {}).ok()) << "removing a removed object succeeds";
}

TEST_F(ClientTest, RemovesAllSelectedObjects) {
  for (const char* name : {"a", "b", "c"}) {
    Object object = config_map(name, "1");
    if (*name == 'c') object["metadata"]["labels"]["test"] = "other";
    ASSERT_TRUE(client().create(config_maps(), object).ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(client().remove_all(config_maps(), {}, {}))) << "all namespaces";
  ASSERT_TRUE(client().remove_all(config_maps(), {.ns = ns_, .labels = "test=yes"}, {}).ok());
  const auto left = client().list(config_maps(), {.ns = ns_});
  ASSERT_TRUE(left.ok());
  ASSERT_EQ(left->items.size(), 1U);
  EXPECT_EQ(name_of(left->items[0]), "c");
  EXPECT_EQ(client().list(config_maps(), {.ns = ns_, .fields = "metadata.name=x"})->items.size(), 0U);
}

TEST_F(ClientTest, ApplySharesAnObjectBetweenManagers) {
  Object object = config_map("shared", "ours");
  ASSERT_TRUE(client().apply(config_maps(), object, {.field_manager = "one"}).ok()) << "apply creates a missing object";
  object["data"]["value"] = "theirs";
  const absl::Status conflict =
      client().apply(config_maps(), object, {.field_manager = "two", .force = false}).status();
  EXPECT_TRUE(absl::IsAborted(conflict)) << conflict;
  EXPECT_THAT(conflict.message(), HasSubstr(".data.value"));
  const auto forced = client().apply(config_maps(), object, {.field_manager = "two"});
  ASSERT_TRUE(forced.ok()) << forced.status();
  EXPECT_EQ((*forced)["data"]["value"], "theirs");
  // Applying the same again changes nothing, so a call may be sent again.
  EXPECT_EQ(resource_version_of(*client().apply(config_maps(), object, {.field_manager = "two"})),
            resource_version_of(*forced));
}

TEST_F(ClientTest, RefusalsHaveTheirCodesAndTheServersMessage) {
  ASSERT_TRUE(client().create(config_maps(), config_map("a", "1")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(client().create(config_maps(), config_map("a", "1")).status()));
  const absl::Status name = client().create(config_maps(), config_map("Not_A_Name", "1")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(name)) << name;
  EXPECT_THAT(name.message(), HasSubstr("metadata.name"));
  Object wrong = config_map("b", "1");
  wrong["data"] = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(client().create(config_maps(), wrong).status())) << "400";
  EXPECT_TRUE(absl::IsInvalidArgument(client().get(config_maps(), ns_, "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client().get(config_maps(), "", "a").status()));
  Object misspelt = config_map("c", "1");
  misspelt["immutabel"] = true;
  const absl::Status unknown = client().create(config_maps(), misspelt).status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown)) << unknown;
  EXPECT_THAT(unknown.message(), HasSubstr("immutabel"));
  Object generated = config_map("", "1");
  generated["metadata"] = {{"namespace", ns_}, {"generateName", "a-"}};
  EXPECT_TRUE(absl::IsInvalidArgument(client().create(config_maps(), generated).status()));
  Object elsewhere = config_map("a", "1");
  elsewhere["metadata"]["namespace"] = "no-such-namespace";
  EXPECT_TRUE(absl::IsNotFound(client().create(config_maps(), elsewhere).status()));

  const auto alice = client_as(kAliceToken);
  const absl::Status forbidden = alice->get(config_maps(), ns_, "a").status();
  EXPECT_TRUE(absl::IsPermissionDenied(forbidden)) << forbidden;
  EXPECT_THAT(forbidden.message(), HasSubstr("alice"));
  EXPECT_TRUE(absl::IsUnauthenticated(client_as("nobody's")->get(config_maps(), ns_, "a").status()));
  EXPECT_EQ(*client().get_raw("/readyz"), "ok");
  EXPECT_TRUE(client().get_raw("/version")->contains("gitVersion"));
}

TEST_F(ClientTest, AQuotaExhaustsResources) {
  const Resource quotas{"", "v1", "resourcequotas", "ResourceQuota", true};
  Object quota = {{"apiVersion", "v1"},
                  {"kind", "ResourceQuota"},
                  {"metadata", {{"namespace", ns_}, {"name", "q"}}},
                  {"spec", {{"hard", {{"count/configmaps", "1"}}}}}};
  ASSERT_TRUE(client().create(quotas, quota).ok());
  // Sets the status that the quota controller would set; no such controller runs here.
  quota.erase("spec");
  quota["status"] = {{"hard", {{"count/configmaps", "1"}}}, {"used", {{"count/configmaps", "1"}}}};
  ASSERT_TRUE(client().apply(quotas, quota, {.subresource = "status"}).ok());
  absl::Status refused;
  int number = 0;
  EXPECT_TRUE(eventually([&] {
    refused = client().create(config_maps(), config_map(absl::StrCat("c", number++), "1")).status();
    return absl::IsResourceExhausted(refused);
  })) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("exceeded quota: q"));
}

TEST_F(ClientTest, ListsMoreThanAPage) {
  constexpr int kObjects = 550;
  std::atomic<int> next = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < 16; ++i) {
    writers.emplace_back([&] {
      for (int number = next++; number < kObjects; number = next++) {
        EXPECT_TRUE(client().create(config_maps(), config_map(absl::StrCat("c", number), "1")).ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto list = client().list(config_maps(), {.ns = ns_});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->items.size(), static_cast<size_t>(kObjects));
  EXPECT_EQ(list->items[7]["kind"], "ConfigMap");
  EXPECT_EQ(list->items[7]["apiVersion"], "v1");
  std::vector<size_t> pages;
  const auto version = client().list_pages(config_maps(), {.ns = ns_}, kPageSize,
                                           [&](const std::vector<Object>& page) { pages.push_back(page.size()); });
  ASSERT_TRUE(version.ok());
  EXPECT_THAT(pages, testing::ElementsAre(500, 50));
  EXPECT_TRUE(client().remove_all(config_maps(), {.ns = ns_}, {}).ok());
}

TEST_F(ClientTest, AWatchSeesChangesInOrderAndEndsWhenCancelled) {
  const auto list = client().list(config_maps(), {.ns = ns_});
  ASSERT_TRUE(list.ok());
  std::vector<std::pair<EventType, std::string>> events;
  absl::Notification all_seen;
  Cancellation cancel;
  absl::Status ended;
  std::thread watcher([&] {
    ended = client().watch(config_maps(), {.ns = ns_}, list->resource_version, cancel, [&](const WatchEvent& event) {
      events.emplace_back(event.type, name_of(event.object));
      if (event.type == EventType::kDeleted) all_seen.Notify();
    });
  });
  ASSERT_TRUE(client().create(config_maps(), config_map("a", "1")).ok());
  ASSERT_TRUE(client().merge_patch(config_maps(), ns_, "a", {{"data", {{"value", "2"}}}}).ok());
  ASSERT_TRUE(client().remove(config_maps(), ns_, "a", {}).ok());
  EXPECT_TRUE(all_seen.WaitForNotificationWithTimeout(absl::Minutes(1)));
  cancel.cancel();
  watcher.join();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  EXPECT_THAT(events,
              testing::ElementsAre(testing::Pair(EventType::kAdded, "a"), testing::Pair(EventType::kModified, "a"),
                                   testing::Pair(EventType::kDeleted, "a")));
  EXPECT_TRUE(absl::IsCancelled(client().watch(config_maps(), {.ns = ns_}, list->resource_version, cancel, nullptr)))
      << "a cancel stays cancelled";
}

TEST_F(ClientTest, AFrozenServerCostsNoMoreThanTheTimeoutAndACancelLess) {
  const auto list = client().list(config_maps(), {.ns = ns_});
  ASSERT_TRUE(list.ok());
  freeze_server();
  const absl::Cleanup resume = [this] { server().command("resume-apiserver"); };
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      client().bounded(absl::Milliseconds(300), nullptr)->get(config_maps(), ns_, "a").status()));

  Cancellation cancel;
  absl::Status call_ended;
  absl::Status watch_ended;
  std::thread caller(
      [&] { call_ended = client().bounded(absl::Minutes(5), &cancel)->get(config_maps(), ns_, "a").status(); });
  std::thread watcher([&] {
    watch_ended = client().watch(config_maps(), {.ns = ns_}, list->resource_version, cancel, [](const WatchEvent&) {});
  });
  absl::SleepFor(absl::Milliseconds(100));
  cancel.cancel();
  caller.join();  // the call's own timeout is above the time limit of the test
  watcher.join();
  EXPECT_TRUE(absl::IsCancelled(call_ended)) << call_ended;
  EXPECT_TRUE(absl::IsCancelled(watch_ended)) << watch_ended;
}

TEST_F(ClientTest, ASilentWatchEndsAndTheNextFindsTheServer) {
  Client::Options options{.credentials = server().admin()};
  options.timeout = absl::Seconds(1);
  options.stall_timeout = absl::Seconds(2);
  const auto impatient = client_with(options);
  const auto list = client().list(config_maps(), {.ns = ns_});
  ASSERT_TRUE(list.ok());
  Cancellation cancel;
  const auto watch = [&] {
    return impatient->watch(config_maps(), {.ns = ns_}, list->resource_version, cancel, [](const WatchEvent&) {});
  };
  const absl::Status silent = watch();
  EXPECT_TRUE(absl::IsDeadlineExceeded(silent)) << silent;
  freeze_server();
  const absl::Status frozen = watch();
  server().command("resume-apiserver");
  EXPECT_TRUE(absl::IsUnavailable(frozen)) << frozen;
}

TEST_F(ClientTest, TooManyCallsWaitForEachOther) {
  Client::Options options{.credentials = server().admin()};
  options.in_flight = 1;
  const auto narrow = client_with(options);
  const auto quick = narrow->bounded(absl::Milliseconds(300), nullptr);
  freeze_server();
  std::thread hanging([&] { narrow->get(config_maps(), ns_, "a").IgnoreError(); });
  absl::SleepFor(absl::Milliseconds(100));
  const absl::Status refused = quick->get(config_maps(), ns_, "a").status();
  server().command("resume-apiserver");
  hanging.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("1 other calls"));
  EXPECT_TRUE(absl::IsNotFound(narrow->get(config_maps(), ns_, "a").status())) << "the connection is free again";
}

TEST_F(ClientTest, ServersOfAnotherAuthorityAreUnavailable) {
  Client::Options options{.credentials = server().admin()};
  const std::string other_ca = absl::StrCat(testing::TempDir(), "/", ns_, "-ca");
  const absl::Cleanup remove = [&] {
    std::filesystem::remove(other_ca + ".crt");
    std::filesystem::remove(other_ca + ".key");
  };
  const std::string command =
      absl::StrCat("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=other -keyout ",
                   other_ca, ".key -out ", other_ca, ".crt 2>/dev/null");
  ASSERT_EQ(std::system(command.c_str()), 0);
  options.credentials.ca_file = other_ca + ".crt";
  const absl::Status wrong_ca = client_with(options)->get_raw("/version").status();
  EXPECT_TRUE(absl::IsUnavailable(wrong_ca)) << wrong_ca;
  EXPECT_THAT(wrong_ca.message(), HasSubstr("CA"));

  options.credentials.ca_file = "/nonexistent/ca.crt";
  EXPECT_TRUE(absl::IsUnavailable(client_with(options)->get_raw("/version").status()));
  options.credentials = server().admin();
  options.credentials.server = "https://127.0.0.1:1";
  EXPECT_TRUE(absl::IsUnavailable(client_with(options)->get_raw("/version").status()));
  options.credentials.server = "127.0.0.1:6443";
  EXPECT_TRUE(absl::IsInvalidArgument(Client::create(env(), options).status()));
}

TEST_F(ClientTest, ARotatedTokenIsUsedAtOnce) {
  TokenFile token(ns_, kBobToken);
  const auto rotating = client_with({.credentials = token.credentials(server().admin())});
  EXPECT_EQ(whoami(*rotating), "bob");
  token.write(kCarolToken);
  EXPECT_EQ(whoami(*rotating), "carol");
  token.write("expired");
  EXPECT_TRUE(absl::IsUnauthenticated(rotating->get_raw("/version").status()) ||
              absl::IsUnauthenticated(rotating->get(config_maps(), ns_, "a").status()));
  token.write(kBobToken);
  EXPECT_EQ(whoami(*rotating), "bob");
}

TEST_F(ClientTest, TheKubeconfigLeadsToTheSameServer) {
  auto credentials = kubeconfig_credentials(server().kubeconfig(), "");
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(whoami(*client_with({.credentials = *credentials})), "admin");
}

}  // namespace
}  // namespace gleaner::kube
