#include "common/member/leaving.h"

#include <gtest/gtest.h>

namespace gleaner::member {
namespace {

constexpr absl::Duration kRequestTime = absl::Seconds(100);
constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr absl::Duration kDeadline = absl::Seconds(10);

TEST(Leaving, AMemberFollowsPlansUntilItLeavesInError) {
  Leaving leaving(false);
  EXPECT_TRUE(leaving.follows_plans());
  leaving.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  EXPECT_TRUE(leaving.follows_plans());
  leaving.request(absl::InternalError("broken"), false, kTimeout, kRequestTime);
  EXPECT_FALSE(leaving.follows_plans());
}

TEST(Leaving, TheMessageHasTheRequest) {
  Leaving leaving(false);
  leaving.request(absl::InternalError("broken"), true, kTimeout, kRequestTime);
  EXPECT_EQ(leaving.message(3), (control::Leave{absl::InternalError("broken"), 3, true}));
}

TEST(Leaving, ACommitKeepsAWorkerThatLeavesCleanly) {
  Leaving leaving(false);
  EXPECT_FALSE(leaving.on_commit()) << "there is no request";
  leaving.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  EXPECT_TRUE(leaving.on_commit());
  EXPECT_FALSE(leaving.is_requested());
  leaving.request(absl::InternalError("broken"), false, kTimeout, kRequestTime);
  EXPECT_FALSE(leaving.on_commit());
  EXPECT_TRUE(leaving.is_requested());
}

TEST(Leaving, ASummersRequestOutlastsCommits) {
  Leaving leaving(true);
  leaving.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  EXPECT_FALSE(leaving.on_commit());
  EXPECT_TRUE(leaving.is_requested());
}

TEST(Leaving, OnlyAWorkerThatAskedNeedsNoNewsOfGoodbye) {
  Leaving worker(false);
  Leaving summer(true);
  EXPECT_TRUE(worker.is_told_of_goodbye());
  worker.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  summer.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  EXPECT_FALSE(worker.is_told_of_goodbye());
  EXPECT_TRUE(summer.is_told_of_goodbye());
}

TEST(Leaving, WaitsForASlowCoordinatorUntilTheDeadline) {
  Leaving leaving(false);
  EXPECT_FALSE(leaving.has_waited_for_connected(kDeadline, absl::Hours(1))) << "there is no request";
  leaving.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  EXPECT_FALSE(leaving.has_waited_for_connected(kDeadline, kRequestTime + kDeadline));
  EXPECT_TRUE(leaving.has_waited_for_connected(kDeadline, kRequestTime + kDeadline + absl::Milliseconds(1)));
  leaving.on_pause(absl::Seconds(1));
  EXPECT_FALSE(leaving.has_waited_for_connected(kDeadline, kRequestTime + kDeadline + absl::Milliseconds(1)));
}

TEST(Leaving, WaitsForALostCoordinatorSinceItsLoss) {
  Leaving leaving(false);
  leaving.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  const absl::Duration end = kRequestTime + kTimeout + absl::Milliseconds(1);
  EXPECT_TRUE(leaving.has_waited_for_lost(std::nullopt, end));
  EXPECT_TRUE(leaving.has_waited_for_lost(kRequestTime - absl::Hours(1), end));
  EXPECT_FALSE(leaving.has_waited_for_lost(kRequestTime + absl::Seconds(1), end));
}

TEST(Leaving, ASummerDoesNotLeaveWithoutAnAnswer) {
  Leaving leaving(true);
  leaving.request(absl::OkStatus(), false, kTimeout, kRequestTime);
  EXPECT_FALSE(leaving.has_waited_for_connected(kDeadline, absl::Hours(1)));
  EXPECT_FALSE(leaving.has_waited_for_lost(std::nullopt, absl::Hours(1)));
}

}  // namespace
}  // namespace gleaner::member
