#include "common/transport/rdma/credits.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace gleaner::transport::rdma {
namespace {

TEST(Credits, FramesStopBeforeGrantsAndGrantsBeforeReturns) {
  Credits credits;
  int data = 0;
  for (; credits.for_data(); ++data) credits.spend();
  EXPECT_GT(data, kSlots / 2);
  EXPECT_TRUE(credits.for_grants());
  while (credits.for_grants()) credits.spend();
  EXPECT_TRUE(credits.for_return());
  credits.spend();
  EXPECT_FALSE(credits.for_return());
}

TEST(Credits, AnOfferKeepsASlotForItsWrite) {
  Credits credits;
  int offers = 0;
  for (; credits.for_offer(); ++offers) {
    credits.spend();
    credits.offered();
  }
  while (credits.for_return()) credits.spend();
  for (int i = 0; i < offers; ++i) credits.written();
  EXPECT_TRUE(credits.got(kSlots)) << "all of them were spent, and no more";
  EXPECT_FALSE(credits.got(1));
}

TEST(Credits, AWriteByALaneGivesItsSlotBack) {
  Credits credits;
  int offers = 0;
  for (; credits.for_offer(); ++offers) credits.offered();
  for (int i = 0; i < offers; ++i) credits.written_elsewhere();
  EXPECT_TRUE(credits.for_offer());
  EXPECT_FALSE(credits.got(1)) << "none was spent";
}

TEST(Credits, WhatIsSaidOfLanesDoesNotKeepGrantsWaiting) {
  Credits sender, receiver;
  while (sender.for_data()) sender.spend();
  for (int i = 0; i < 100; ++i) {  // no frame comes or goes any more
    ASSERT_TRUE(sender.for_grants()) << "packet " << i;
    sender.spend();
    receiver.refilled();
    receiver.owes_for_taken();
    if (!receiver.owes_many()) continue;
    ASSERT_TRUE(sender.got(receiver.take_owed()));
  }
}

// Two ends that send as much as they may, each message taking a slot that is filled again some time later, never send
// into none, and never come to rest with work left.
TEST(Credits, TwoEndsNeverOverrunNorStop) {
  std::mt19937 random(11);
  struct End {
    Credits credits;
    int slots = kSlots;             // that the other side may still fill
    std::deque<uint16_t> arriving;  // credits in messages to it
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
    ASSERT_GT(other.slots, 0) << "no slot for it";
    --other.slots;
    other.arriving.push_back(me.credits.take_owed());
  }
  EXPECT_FALSE(work_left()) << "stuck after " << turns << " turns";
}

}  // namespace
}  // namespace gleaner::transport::rdma
