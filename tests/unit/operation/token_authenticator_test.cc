// Tests that a token is valid only for the member whose pod it names.
#include "operator/service/token_authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::operation {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json review() {
  return json::parse(R"({"status": {"authenticated": true, "audiences": ["gleaner.dev"],
    "user": {"username": "system:serviceaccount:team:default", "extra": {
      "authentication.kubernetes.io/pod-name": ["digits-worker-1"],
      "authentication.kubernetes.io/pod-uid": ["p1"]}}}})");
}

reconcile::PodView pod() {
  reconcile::PodView pod;
  pod.name = "digits-worker-1";
  pod.ns = "team";
  pod.uid = "p1";
  pod.job = "digits";
  pod.role = "worker";
  pod.owner_uid = "j1";
  pod.index = 1;
  pod.attempt = 2;
  return pod;
}

coordinator::Identity worker(uint32_t index) {
  coordinator::Identity identity;
  identity.role = coordinator::Role::kWorker;
  identity.index = index;
  return identity;
}

const TokenHolder kHolder{"team", "digits-worker-1", "p1"};

TEST(TokenReview, NamesThePod) {
  const auto holder = read_review(review());
  ASSERT_TRUE(holder.ok()) << holder.status();
  EXPECT_EQ(holder->ns, "team");
  EXPECT_EQ(holder->pod, "digits-worker-1");
  EXPECT_EQ(holder->pod_uid, "p1");
}

TEST(TokenReview, RefusesOtherTokens) {
  json other = review();
  other["status"]["audiences"] = {"https://kubernetes.default.svc"};
  EXPECT_TRUE(absl::IsPermissionDenied(read_review(other).status()))
      << "a token for the API server has another audience";
  other = review();
  other["status"]["authenticated"] = false;
  EXPECT_TRUE(absl::IsPermissionDenied(read_review(other).status()));
  other = review();
  other["status"]["user"]["extra"].erase("authentication.kubernetes.io/pod-uid");
  EXPECT_TRUE(absl::IsPermissionDenied(read_review(other).status())) << "the token is not bound to a pod";
  other = review();
  other["status"]["user"]["username"] = "system:node:n1";
  EXPECT_TRUE(absl::IsPermissionDenied(read_review(other).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(read_review(json::object()).status()));
}

TEST(Member, IsIdentifiedByItsPod) {
  EXPECT_TRUE(check_member("team/digits/2", worker(1), kHolder, pod()).ok());
  EXPECT_THAT(check_member("team/digits/2", worker(0), kHolder, pod()).message(), HasSubstr("number 1"));
  EXPECT_THAT(check_member("team/digits/1", worker(1), kHolder, pod()).message(), HasSubstr("another job or attempt"));
  EXPECT_THAT(check_member("team/other/2", worker(1), kHolder, pod()).message(), HasSubstr("another job or attempt"));
  EXPECT_THAT(check_member("rival/digits/2", worker(1), kHolder, pod()).message(), HasSubstr("another job or attempt"));
  coordinator::Identity summer = worker(1);
  summer.role = coordinator::Role::kSummer;
  EXPECT_THAT(check_member("team/digits/2", summer, kHolder, pod()).message(), HasSubstr("the pod is a worker"));
  coordinator::Identity nameless = worker(1);
  nameless.index.reset();
  EXPECT_FALSE(check_member("team/digits/2", nameless, kHolder, pod()).ok());
}

TEST(Member, AnyPodOfTheJobMayTraceIt) {
  coordinator::Identity observer;
  observer.role = coordinator::Role::kObserver;
  EXPECT_TRUE(check_member("team/digits/2", observer, kHolder, pod()).ok());
  EXPECT_THAT(check_member("team/other/2", observer, kHolder, pod()).message(), HasSubstr("another job or attempt"));
}

TEST(Member, AnImitatedPodIsRefused) {
  reconcile::PodView stranger = pod();
  stranger.owner_uid.clear();
  EXPECT_THAT(check_member("team/digits/2", worker(1), kHolder, stranger).message(), HasSubstr("no TrainingJob"));
  reconcile::PodView later = pod();
  later.uid = "p2";
  EXPECT_THAT(check_member("team/digits/2", worker(1), kHolder, later).message(), HasSubstr("earlier pod"));
}

}  // namespace
}  // namespace gleaner::operation
