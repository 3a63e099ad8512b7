#include "common/transport/rdma/offers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::transport::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OffersTest : public ::testing::Test {
 protected:
  uint16_t add() { return offers_.add(pool_.take(8), 100, 7); }
  // Adds an offer that the peer grants at once.
  uint16_t add_granted(uint16_t lane) {
    const uint16_t number = add();
    offers_.grant(number, lane, {.address = 1000, .key = 5});
    return number;
  }

  BufferPool pool_;
  Offers offers_;
};

TEST_F(OffersTest, NumbersAreUsedAgain) {
  for (uint16_t i = 0; i < kMaxOffers; ++i) {
    EXPECT_FALSE(offers_.full());
    EXPECT_EQ(add_granted(0), i);
  }
  EXPECT_TRUE(offers_.full());
  offers_.posted_by_link(kMaxOffers);
  EXPECT_EQ(offers_.on_written(3), 100u);
  EXPECT_FALSE(offers_.full());
  EXPECT_EQ(add(), 3u);
  EXPECT_FALSE(offers_.at(3).granted);
}

TEST_F(OffersTest, OnlyOpenOffersAreGranted) {
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.find_open(0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.find_open(kMaxOffers).status()));
  const uint16_t number = add();
  ASSERT_TRUE(offers_.find_open(number).ok());
  EXPECT_EQ((*offers_.find_open(number))->payload.size(), 8u);
  offers_.grant(number, 0, {});
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.find_open(number).status())) << "granted twice";
}

TEST_F(OffersTest, GrantsWaitForTheirPath) {
  for (const uint16_t lane : {0, 2, 0, 1, 3}) add_granted(lane);
  EXPECT_THAT(offers_.waiting_for_link(), ElementsAre(0, 2));
  EXPECT_THAT(offers_.waiting_for_lanes(), ElementsAre(1, 3, 4));
  EXPECT_EQ(offers_.at(3).lane, 1u);
  EXPECT_EQ(offers_.at(3).target.address, 1000u);
  EXPECT_FALSE(offers_.are_read());
  offers_.posted_by_link(2);
  EXPECT_TRUE(offers_.are_read());
  offers_.posted_by_lanes(1);
  EXPECT_THAT(offers_.waiting_for_link(), IsEmpty());
  EXPECT_THAT(offers_.waiting_for_lanes(), ElementsAre(3, 4)) << "the second WRITE was not accepted";
}

TEST_F(OffersTest, LaneNumbersWaitForBoth) {
  const uint16_t first = add_granted(1), second = add_granted(1);
  offers_.posted_by_lanes(2);
  offers_.on_written_by_lane(first);
  EXPECT_EQ(offers_.at(first).bytes, 100u) << "the peer has not taken the payload";
  EXPECT_TRUE(offers_.at(first).payload.empty());
  ASSERT_TRUE(offers_.on_taken(first).ok());
  EXPECT_EQ(offers_.at(first).bytes, 0u);
  ASSERT_TRUE(offers_.on_taken(second).ok());
  EXPECT_EQ(offers_.at(second).bytes, 100u) << "the adapter may still read the payload";
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.on_taken(second))) << "said before";
  offers_.on_written_by_lane(second);
  EXPECT_EQ(offers_.at(second).bytes, 0u);
  EXPECT_FALSE(offers_.are_read());
}

TEST_F(OffersTest, TakenNeedsALane) {
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.on_taken(0)));
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.on_taken(kMaxOffers)));
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.on_taken(add_granted(0))));
}

TEST_F(OffersTest, PostedPayloadsOutliveDropWaiting) {
  const uint16_t posted = add_granted(0);
  offers_.posted_by_link(1);
  const uint16_t waiting = add_granted(2), open = add();
  offers_.drop_waiting();
  EXPECT_FALSE(offers_.at(posted).payload.empty());
  EXPECT_TRUE(offers_.at(waiting).payload.empty());
  EXPECT_TRUE(offers_.at(open).payload.empty());
  EXPECT_THAT(offers_.waiting_for_lanes(), IsEmpty());
  offers_.clear();
  EXPECT_TRUE(offers_.at(posted).payload.empty());
  EXPECT_FALSE(offers_.are_read());
}

}  // namespace
}  // namespace gleaner::transport::rdma
