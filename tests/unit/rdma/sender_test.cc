// Tests the parts of the sender that need no adapter: small frames, and items that violate the protocol.
#include "common/transport/rdma/sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/rdma/fake_pair.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SenderTest : public ::testing::Test {
 protected:
  void push(uint64_t step, size_t bytes) {
    wire::Header header;
    header.type = wire::FrameType::kPush;
    header.step = step;
    header.payload_bytes = static_cast<uint32_t>(bytes);
    sender_.push(header, pool_.take(bytes));
  }
  // Posts requests, and returns the steps of the frames in each packet.
  std::vector<std::vector<uint64_t>> post() {
    fake_.posted.clear();
    fake_.sent.clear();
    EXPECT_TRUE(sender_.post(&fake_.pair).ok());
    std::vector<std::vector<uint64_t>> packets;
    for (const ConstBytes bytes : fake_.sent) {
      packets.emplace_back();
      PacketReader reader = PacketReader::open(bytes).value();
      while (!reader.done()) packets.back().push_back(read_as<wire::Header>(reader.next()->body).step);
    }
    return packets;
  }

  BufferPool pool_;
  FakePair fake_;
  LaneTable lanes_;
  SlotCredits credits_;
  std::vector<std::byte> slots_ = std::vector<std::byte>(Sender::kMemory);
  Sender sender_{nullptr, &lanes_, &credits_, slots_, 0, false};
};

TEST_F(SenderTest, SmallFramesShareAPacket) {
  push(1, 10);
  push(2, 20);
  push(3, kMaxSmallPayload);
  EXPECT_EQ(sender_.queued_bytes(), 3 * wire::kHeaderBytes + 30 + kMaxSmallPayload);
  EXPECT_THAT(post(), ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
  EXPECT_EQ(sender_.queued_bytes(), 0u);
  EXPECT_EQ(pool_.bytes_in_use(), 0u) << "the frames are in the slots";
  EXPECT_FALSE(sender_.is_quiet());
  sender_.on_completed(fake_.posted.back());
  EXPECT_TRUE(sender_.is_quiet());
  EXPECT_THAT(post(), IsEmpty());
}

TEST_F(SenderTest, PacketsWaitForSlotsAndCredits) {
  for (uint64_t step = 0; step < 2 * kSlots; ++step) push(step, kMaxSmallPayload);
  EXPECT_EQ(post().size(), SendSlots::kCount);
  EXPECT_THAT(post(), IsEmpty()) << "the adapter has all slots";
  sender_.on_completed(SendSlots::kCount - 1);
  const size_t more = post().size();
  EXPECT_GT(more, 0u);
  EXPECT_LT(SendSlots::kCount + more, size_t{kSlots}) << "some slots of the peer are for other messages";
  sender_.on_completed(SendSlots::kCount + more - 1);
  EXPECT_THAT(post(), IsEmpty()) << "the peer has returned no credits";
  ASSERT_TRUE(credits_.got(2));
  EXPECT_THAT(post(), ElementsAre(ElementsAre(SendSlots::kCount + more), ElementsAre(SendSlots::kCount + more + 1)));
}

TEST_F(SenderTest, RefusesAnswersWithoutOffers) {
  EXPECT_TRUE(absl::IsInvalidArgument(sender_.on_grant(0, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(sender_.on_grant(kMaxOffers, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(sender_.on_taken(0)));
}

TEST_F(SenderTest, DropWaitingReleasesFrames) {
  push(1, 10);
  sender_.drop_waiting();
  EXPECT_EQ(pool_.bytes_in_use(), 0u);
  EXPECT_THAT(post(), IsEmpty());
  sender_.clear();
  EXPECT_EQ(sender_.queued_bytes(), 0u);
}

}  // namespace
}  // namespace gleaner::transport::rdma
