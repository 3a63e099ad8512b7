// Tests the parts of the receiver that need no adapter: small frames, and packets that violate the protocol.
#include "common/transport/rdma/receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gleaner::transport::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReceiverTest : public ::testing::Test, private Receiver::User {
 protected:
  // Writes a packet with small frames of these steps into the slot, and hands it to the receiver.
  absl::Status receive(uint16_t slot, const std::vector<uint64_t>& steps, uint16_t credits = 0) {
    PacketWriter writer(MutableBytes(slots_).subspan(slot * kSlotBytes, kSlotBytes));
    for (const uint64_t step : steps) {
      wire::Header header;
      header.type = wire::FrameType::kPush;
      header.step = step;
      const std::vector<std::byte> payload(10, std::byte(step));
      wire::seal(header, payload);
      writer.add(ItemKind::kFrame, 0, std::as_bytes(std::span(&header, 1)), payload);
    }
    return receiver_.on_packet(slot, writer.finish(credits));
  }
  absl::Status receive_item(ItemKind kind, uint16_t number, ConstBytes body) {
    PacketWriter writer(MutableBytes(slots_).first(kSlotBytes));
    writer.add(kind, number, body);
    return receiver_.on_packet(0, writer.finish(0));
  }

  std::vector<std::byte> slots_ = std::vector<std::byte>(Receiver::kMemory);
  std::vector<std::byte> send_slots_ = std::vector<std::byte>(Sender::kMemory);
  LaneTable lanes_;
  SlotCredits credits_;
  Sender sender_{nullptr, &lanes_, &credits_, send_slots_, 0, false};
  Receiver receiver_{this, nullptr, &lanes_, &credits_, &sender_, slots_, 0};
  std::vector<uint64_t> steps_;
  std::vector<ItemKind> lane_items_;
  uint64_t forget_at_ = UINT64_MAX;  // the step whose frame makes the user detach itself

 private:
  absl::StatusOr<Buffer> place_payload(const wire::Header& header) override { return pool_.take(header.payload_bytes); }
  void hand_on(const wire::Header& header, Buffer payload) override {
    EXPECT_EQ(payload.bytes()[9], std::byte(header.step));
    steps_.push_back(header.step);
    if (header.step == forget_at_) receiver_.forget_user();
  }
  absl::Duration now() const override { return absl::ZeroDuration(); }
  absl::Status on_lane_item(const PacketReader::Item& item) override {
    lane_items_.push_back(item.kind);
    return absl::OkStatus();
  }
  BufferPool pool_;
};

TEST_F(ReceiverTest, DeliversFramesInOrder) {
  EXPECT_TRUE(receive(5, {1, 2, 3}).ok());
  EXPECT_TRUE(receive(0, {4}).ok());
  EXPECT_THAT(steps_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(credits_.take_owed(), 2u) << "both slots are owed to the peer";
}

TEST_F(ReceiverTest, DetachedUserGetsNothing) {
  forget_at_ = 2;
  EXPECT_TRUE(receive(0, {1, 2, 3}).ok());
  EXPECT_THAT(steps_, ElementsAre(1, 2));
}

TEST_F(ReceiverTest, ChecksPayloadsOfSmallFrames) {
  PacketWriter writer(MutableBytes(slots_).first(kSlotBytes));
  wire::Header header;
  header.type = wire::FrameType::kPush;
  std::vector<std::byte> payload(10, std::byte{1});
  wire::seal(header, payload);
  payload[3] = std::byte{9};
  writer.add(ItemKind::kFrame, 0, std::as_bytes(std::span(&header, 1)), payload);
  EXPECT_TRUE(absl::IsDataLoss(receiver_.on_packet(0, writer.finish(0))));
  EXPECT_THAT(steps_, IsEmpty());
}

TEST_F(ReceiverTest, RefusesMoreCreditsThanSlots) {
  EXPECT_TRUE(absl::IsInvalidArgument(receive(0, {1}, 1))) << "a credit was returned for no message";
  EXPECT_THAT(steps_, IsEmpty());
}

TEST_F(ReceiverTest, HandshakePrecedesMemoryItems) {
  const RegionItem region{.address = 1, .bytes = 2, .key = 3, .index = 0};
  const ConstBytes body = std::as_bytes(std::span(&region, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(receive_item(ItemKind::kRegion, 0, body)));
  EXPECT_TRUE(absl::IsInvalidArgument(receive_item(ItemKind::kAsk, 0, {})));
  EXPECT_THAT(lane_items_, IsEmpty());
  receiver_.trust();
  EXPECT_TRUE(receive_item(ItemKind::kRegion, 0, body).ok());
  EXPECT_TRUE(receive_item(ItemKind::kAsk, 0, {}).ok());
  EXPECT_THAT(lane_items_, ElementsAre(ItemKind::kAsk));
}

TEST_F(ReceiverTest, RefusesWriteWithoutOffer) {
  EXPECT_TRUE(absl::IsInvalidArgument(receiver_.on_written(0, to_immediate(3, 0), 100)));
  EXPECT_TRUE(absl::IsInvalidArgument(receiver_.on_written(0, to_immediate(kMaxOffers, 0), 100)));
}

}  // namespace
}  // namespace gleaner::transport::rdma
