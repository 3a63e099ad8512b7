#include "summation-service/service/ending.h"

#include <gtest/gtest.h>

namespace gleaner::service {
namespace {

constexpr absl::Duration kStart = absl::Hours(5);
constexpr absl::Duration kDeadline = absl::Seconds(10);

class EndingTest : public ::testing::Test {
 protected:
  EndingTest() { ending_.set_deadline(kDeadline); }
  // Returns whether the server has ended `after` the start.
  bool has_ended(absl::Duration after, bool has_workers = false) {
    ending_.tick(has_workers, kStart + after);
    return ending_.has_ended();
  }
  Ending ending_;
};

TEST_F(EndingTest, TheFirstEndCounts) {
  EXPECT_FALSE(has_ended(absl::ZeroDuration()));
  ending_.end(absl::UnavailableError("a worker is lost"));
  ending_.end(absl::OkStatus());
  EXPECT_TRUE(has_ended(absl::ZeroDuration()));
  EXPECT_EQ(ending_.status(), absl::UnavailableError("a worker is lost"));
}

TEST_F(EndingTest, LeavesWithinATimeout) {
  EXPECT_TRUE(ending_.leave(kStart));
  EXPECT_FALSE(ending_.leave(kStart + absl::Seconds(1))) << "the first call sets the time";
  EXPECT_FALSE(has_ended(Ending::kLeaveTimeout, true));
  EXPECT_TRUE(has_ended(Ending::kLeaveTimeout + absl::Milliseconds(1), true));
  EXPECT_TRUE(ending_.status().ok());
}

TEST_F(EndingTest, LossWhileLeavingIsClean) {
  ending_.end(absl::AbortedError("the job counted this summer as lost"));
  EXPECT_TRUE(absl::IsAborted(ending_.status()));
  ending_.leave(kStart);
  EXPECT_TRUE(ending_.status().ok());
}

TEST_F(EndingTest, EndsOnceAbandoned) {
  EXPECT_FALSE(has_ended(absl::ZeroDuration()));
  EXPECT_FALSE(has_ended(absl::Minutes(1))) << "the coordinator is there";
  ending_.set_coordinator_lost(true);
  EXPECT_FALSE(has_ended(absl::Minutes(1) + kDeadline));
  EXPECT_TRUE(has_ended(absl::Minutes(1) + kDeadline + absl::Milliseconds(1)));
  EXPECT_TRUE(ending_.status().ok());
}

TEST_F(EndingTest, ConnectionsPostponeTheEnd) {
  has_ended(absl::ZeroDuration());
  ending_.set_coordinator_lost(true);
  EXPECT_FALSE(has_ended(absl::Seconds(9), true));
  EXPECT_FALSE(has_ended(absl::Seconds(18)));
  ending_.set_coordinator_lost(false);
  EXPECT_FALSE(has_ended(absl::Seconds(20)));
  ending_.set_coordinator_lost(true);
  EXPECT_FALSE(has_ended(absl::Seconds(30)));
  EXPECT_TRUE(has_ended(absl::Seconds(31)));
}

}  // namespace
}  // namespace gleaner::service
