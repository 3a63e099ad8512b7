#include "common/member/leave_outcome.h"

#include <gtest/gtest.h>

#include <thread>

namespace gleaner::member {
namespace {

TEST(LeaveOutcome, WaitsUntilTheMemberHasLeft) {
  LeaveOutcome outcome;
  std::thread other([&outcome] { outcome.set_left(); });
  EXPECT_TRUE(outcome.await());
  other.join();
}

TEST(LeaveOutcome, ReportsThatTheMemberStays) {
  LeaveOutcome outcome;
  std::thread other([&outcome] { outcome.set_stays(); });
  EXPECT_FALSE(outcome.await());
  other.join();
}

TEST(LeaveOutcome, AnotherRequestForgetsThatTheMemberStayed) {
  LeaveOutcome outcome;
  outcome.set_stays();
  outcome.reset();
  outcome.set_left();
  EXPECT_TRUE(outcome.await());
  outcome.reset();
  EXPECT_TRUE(outcome.await()) << "the outcome does not change";
}

}  // namespace
}  // namespace gleaner::member
