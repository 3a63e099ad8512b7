#include "comm-lib/session/owner_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace gleaner::session {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OwnerWaitsTest : public ::testing::Test {
 protected:
  OwnerWaitsTest() { waits_.resize(3); }
  std::vector<uint32_t> waiting_for(uint32_t unreachable = UINT32_MAX) const {
    return waits_.waiting_for([unreachable](uint32_t owner) { return owner != unreachable; });
  }
  static absl::Duration at(int64_t milliseconds) { return absl::Milliseconds(milliseconds); }

  OwnerWaits waits_;
};

TEST_F(OwnerWaitsTest, WaitsFromPushToResult) {
  waits_.on_start(1, at(1));
  EXPECT_THAT(waiting_for(), IsEmpty()) << "nothing was pushed";
  EXPECT_THAT(waiting_for(1), ElementsAre(1)) << "nothing can be pushed";
  waits_.on_push(1, at(2));
  EXPECT_THAT(waiting_for(), ElementsAre(1));
  waits_.on_result(1, at(3));
  EXPECT_THAT(waiting_for(), IsEmpty());
  EXPECT_THAT(waiting_for(1), IsEmpty());
}

TEST_F(OwnerWaitsTest, LongestSilentOwnersFirst) {
  for (const uint32_t owner : {2u, 0u, 1u}) {
    for (int i = 0; i < 2; ++i) waits_.on_start(owner, at(1));
  }
  waits_.on_push(2, at(10));
  waits_.on_push(0, at(20));
  waits_.on_push(1, at(30));
  waits_.on_push(2, at(40));
  EXPECT_THAT(waiting_for(), ElementsAre(2, 0, 1)) << "a second push is no answer";
  waits_.on_defer(2, at(50));
  EXPECT_THAT(waiting_for(), ElementsAre(0, 1, 2));
  waits_.on_push(0, at(55));
  waits_.on_result(0, at(60));
  EXPECT_THAT(waiting_for(), ElementsAre(1, 2, 0)) << "a result is an answer";
}

TEST_F(OwnerWaitsTest, MoveChangesTheOwner) {
  waits_.on_start(0, at(1));
  waits_.on_push(0, at(2));
  waits_.on_move(0, 1, true, at(3));
  EXPECT_THAT(waiting_for(), ElementsAre(1));
  waits_.on_start(0, at(4));
  waits_.on_move(0, 2, false, at(5));
  EXPECT_THAT(waiting_for(), ElementsAre(1));
  EXPECT_THAT(waiting_for(2), ElementsAre(1, 2));
  EXPECT_THAT(waiting_for(0), ElementsAre(1));
  waits_.clear();
  EXPECT_THAT(waiting_for(2), IsEmpty());
}

// Two workers and two summers, members 2 and 3.
class LatenessTest : public ::testing::Test {
 protected:
  LatenessTest() {
    waits_.resize(4);
    waits_.on_plan(2, {true, true, true, true}, at(0));
  }
  static absl::Duration at(int64_t milliseconds) { return absl::Milliseconds(milliseconds); }
  void push(uint32_t owner, int64_t time) {
    waits_.on_start(owner, at(time));
    waits_.on_push(owner, at(time));
  }
  // Returns each summer and its lateness in milliseconds.
  std::vector<std::pair<uint32_t, int64_t>> late(int64_t time) {
    std::vector<std::pair<uint32_t, int64_t>> result;
    for (const auto& each : waits_.late(at(time)))
      result.emplace_back(each.owner, absl::ToInt64Milliseconds(each.time));
    return result;
  }

  OwnerWaits waits_;
};
using Lateness = std::pair<uint32_t, int64_t>;

TEST_F(LatenessTest, LateOnceWorkersHaveAnswered) {
  for (uint32_t owner = 0; owner < 4; ++owner) push(owner, 0);
  waits_.on_result(0, at(10));
  EXPECT_THAT(late(20), ElementsAre(Lateness(2, 0), Lateness(3, 0))) << "worker 1 owes a result, and so do most owners";
  waits_.on_result(1, at(20));
  EXPECT_THAT(late(25), ElementsAre(Lateness(2, 5), Lateness(3, 5)));
  waits_.on_result(2, at(30));
  waits_.on_result(3, at(70));
  EXPECT_THAT(late(100), ElementsAre(Lateness(2, 10), Lateness(3, 50)));
}

TEST_F(LatenessTest, LateOnceMostOwnersAnswered) {
  for (const uint32_t owner : {1u, 2u, 3u}) push(owner, 0);
  EXPECT_THAT(late(10), ElementsAre(Lateness(2, 0), Lateness(3, 0)));
  waits_.on_result(3, at(10));
  EXPECT_THAT(late(30), ElementsAre(Lateness(2, 20), Lateness(3, 0)));
}

TEST_F(LatenessTest, WorkersLateWithoutOwingSummers) {
  for (const uint32_t owner : {1u, 2u}) push(owner, 0);
  waits_.on_result(2, at(10));
  waits_.on_result(1, at(50));
  push(3, 60);
  EXPECT_EQ(waits_.workers_late(at(100)), at(40));
}

TEST_F(LatenessTest, UnpushedPartitionIsNotLate) {
  waits_.on_start(2, at(0));
  EXPECT_THAT(late(10), ElementsAre(Lateness(2, 0), Lateness(3, 0)));
  waits_.on_push(2, at(10));
  EXPECT_THAT(late(30), ElementsAre(Lateness(2, 20), Lateness(3, 0)));
}

TEST_F(LatenessTest, PlanRestartsTheMeasurement) {
  push(2, 0);
  waits_.on_plan(2, {true, true, true, false}, at(40));
  EXPECT_THAT(late(50), ElementsAre(Lateness(2, 10))) << "member 3 owns nothing";
  waits_.on_move(2, 0, true, at(60));
  EXPECT_THAT(late(90), ElementsAre(Lateness(2, 20)));
  waits_.clear();
  push(2, 100);
  EXPECT_THAT(late(110), ElementsAre(Lateness(2, 10)));
}

}  // namespace
}  // namespace gleaner::session
