#include "common/transport/rdma/slot_credits.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace gleaner::transport::rdma {
namespace {

TEST(SlotCredits, FramesStopBeforeGrants) {
  SlotCredits credits;
  int data = 0;
  for (; credits.for_data(); ++data) credits.spend();
  EXPECT_GT(data, kSlots / 2);
  EXPECT_TRUE(credits.for_grants());
  while (credits.for_grants()) credits.spend();
  EXPECT_TRUE(credits.for_return());
  credits.spend();
  EXPECT_FALSE(credits.for_return());
}

TEST(SlotCredits, OfferKeepsSlotForWrite) {
  SlotCredits credits;
  int offers = 0;
  for (; credits.for_offer(); ++offers) {
    credits.spend();
    credits.offered();
  }
  while (credits.for_return()) credits.spend();
  for (int i = 0; i < offers; ++i) credits.written();
  EXPECT_TRUE(credits.got(kSlots)) << "all credits were spent";
  EXPECT_FALSE(credits.got(1));
}

TEST(SlotCredits, LaneWriteGivesSlotBack) {
  SlotCredits credits;
  int offers = 0;
  for (; credits.for_offer(); ++offers) credits.offered();
  for (int i = 0; i < offers; ++i) credits.written_elsewhere();
  EXPECT_TRUE(credits.for_offer());
  EXPECT_FALSE(credits.got(1)) << "no credit was spent";
}

TEST(SlotCredits, LaneItemsNeverDelayGrants) {
  SlotCredits sender, receiver;
  while (sender.for_data()) sender.spend();
  for (int i = 0; i < 100; ++i) {  // no more frames are sent or received
    ASSERT_TRUE(sender.for_grants()) << "packet " << i;
    sender.spend();
    receiver.refilled();
    receiver.owes_for_taken();
    if (!receiver.owes_many()) continue;
    ASSERT_TRUE(sender.got(receiver.take_owed()));
  }
}

// Two ends send as many messages as their credits allow. Each message takes a slot, which the receiver refills some
// time later. The ends must never send without a free slot, and must not stop while frames are left.
TEST(SlotCredits, EndsNeverOverrunNorStop) {
  std::mt19937 random(11);
  struct End {
    SlotCredits credits;
    int slots = kSlots;             // free slots of this end, which the other side may fill
    std::deque<uint16_t> arriving;  // credits in messages on their way to this end
    int frames_left = 20'000;
  };
  End ends[2];
  uint64_t turns = 0;
  const auto work_left = [&] { return ends[0].frames_left + ends[1].frames_left > 0; };
  for (; work_left() && turns < 10'000'000; ++turns) {
    const size_t which = random() % 2;
    End& me = ends[which];
    End& other = ends[1 - which];
    if (random() % 3 == 0 && !me.arriving.empty()) {
      ASSERT_TRUE(me.credits.got(me.arriving.front()));
      me.arriving.pop_front();
      ++me.slots;
      me.credits.refilled();
      continue;
    }
    const bool data = me.frames_left > 0 && me.credits.for_data();
    if (!data && !(me.credits.owes_many() && me.credits.for_return())) continue;
    me.frames_left -= data;
    me.credits.spend();
    ASSERT_GT(other.slots, 0) << "the peer has no free slot";
    --other.slots;
    other.arriving.push_back(me.credits.take_owed());
  }
  EXPECT_FALSE(work_left()) << "stuck after " << turns << " turns";
}

}  // namespace
}  // namespace gleaner::transport::rdma
