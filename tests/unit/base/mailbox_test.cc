#include "common/base/mailbox.h"

#include <gtest/gtest.h>

namespace gleaner {
namespace {

TEST(Mailbox, WakesItsOwnerOncePerDrain) {
  int wakes = 0, ran = 0;
  Mailbox mailbox([&] { ++wakes; });
  EXPECT_TRUE(mailbox.empty());
  for (int i = 0; i < 3; ++i) mailbox.post([&] { ++ran; });
  EXPECT_FALSE(mailbox.empty());
  EXPECT_EQ(wakes, 1);
  mailbox.drain();
  EXPECT_TRUE(mailbox.empty());
  EXPECT_EQ(ran, 3);
  mailbox.post([&] { ++ran; });
  EXPECT_EQ(wakes, 2);
}

TEST(Mailbox, AMessagePostedByAMessageWaitsForTheNextDrain) {
  int wakes = 0;
  std::vector<int> order;
  Mailbox mailbox([&] { ++wakes; });
  mailbox.post([&] {
    order.push_back(1);
    mailbox.post([&] { order.push_back(3); });
  });
  mailbox.post([&] { order.push_back(2); });
  mailbox.drain();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(wakes, 2);
  mailbox.drain();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Mailbox, DropsMessagesAfterItsEnd) {
  int ran = 0;
  Mailbox mailbox([] {});
  mailbox.post([&] { ++ran; });
  mailbox.close();
  mailbox.post([&] { ++ran; });
  mailbox.drain();
  EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace gleaner
