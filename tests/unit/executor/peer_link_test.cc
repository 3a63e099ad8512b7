#include "comm-lib/executor/peer_link.h"

#include <gtest/gtest.h>

namespace gleaner::executor {
namespace {

constexpr uint64_t kBytes = wire::kHeaderBytes;  // of a slice without payload

TEST(PeerLink, ConfirmsInOrder) {
  PeerLink link;
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(link.send({}).sequence, i);
  EXPECT_EQ(link.unconfirmed_bytes(), 20 * kBytes);
  EXPECT_TRUE(link.confirm(7));
  EXPECT_EQ(link.unconfirmed().size(), 13u);
  EXPECT_EQ(link.unconfirmed().front().header.sequence, 7u);
  EXPECT_TRUE(link.confirm(3)) << "a late confirmation changes nothing";
  EXPECT_EQ(link.unconfirmed().size(), 13u);
  EXPECT_FALSE(link.confirm(21));
  EXPECT_TRUE(link.confirm(20));
  EXPECT_TRUE(link.unconfirmed().empty());
  EXPECT_EQ(link.unconfirmed_bytes(), 0u);
}

TEST(PeerLink, AcceptsEachNumberOnce) {
  PeerLink link;
  EXPECT_EQ(link.arrival(1), PeerLink::Arrival::kGap);
  EXPECT_EQ(link.arrival(0), PeerLink::Arrival::kNext);
  link.accept(10);
  EXPECT_EQ(link.arrival(0), PeerLink::Arrival::kRepeat);
  EXPECT_EQ(link.arrival(1), PeerLink::Arrival::kNext);
}

TEST(PeerLink, OwesConfirmations) {
  PeerLink link;
  link.accept(10);
  link.accept(20);
  EXPECT_EQ(link.owed_slices(), 2u);
  EXPECT_EQ(link.owed_bytes(), 30u);
  EXPECT_EQ(link.take_confirmation(), 2u);
  EXPECT_EQ(link.owed_slices(), 0u);
  EXPECT_EQ(link.owed_bytes(), 0u);
  link.owe();
  EXPECT_EQ(link.owed_slices(), 1u);
  EXPECT_EQ(link.take_confirmation(), 2u);
}

TEST(PeerLink, NumbersWrapAround) {
  PeerLink link(UINT32_MAX - 1);
  for (const uint32_t number : {UINT32_MAX - 1, UINT32_MAX, 0u, 1u}) {
    EXPECT_EQ(link.send({}).sequence, number);
    EXPECT_EQ(link.arrival(number), PeerLink::Arrival::kNext);
    EXPECT_EQ(link.arrival(number + 1), PeerLink::Arrival::kGap);
    link.accept(1);
    EXPECT_EQ(link.arrival(number), PeerLink::Arrival::kRepeat);
  }
  EXPECT_FALSE(link.confirm(3));
  EXPECT_TRUE(link.confirm(1));
  EXPECT_EQ(link.unconfirmed().size(), 1u);
  EXPECT_TRUE(link.confirm(UINT32_MAX)) << "a late confirmation";
  EXPECT_EQ(link.unconfirmed().size(), 1u);
}

}  // namespace
}  // namespace gleaner::executor
