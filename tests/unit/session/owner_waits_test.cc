#include "comm-lib/session/owner_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(OwnerWaitsTest, WaitsFromThePushToTheResult) {
  waits_.on_start(1, at(1));
  EXPECT_THAT(waiting_for(), IsEmpty()) << "nothing was pushed";
  EXPECT_THAT(waiting_for(1), ElementsAre(1)) << "nothing can be pushed";
  waits_.on_push(1, at(2));
  EXPECT_THAT(waiting_for(), ElementsAre(1));
  waits_.on_result(1, at(3));
  EXPECT_THAT(waiting_for(), IsEmpty());
  EXPECT_THAT(waiting_for(1), IsEmpty());
}

TEST_F(OwnerWaitsTest, TheLongestSilentOwnersComeFirst) {
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

TEST_F(OwnerWaitsTest, AMoveTakesThePartitionToItsNewOwner) {
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

}  // namespace
}  // namespace gleaner::session
