#include "common/transport/rdma/packet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace gleaner::transport::rdma {
namespace {

std::vector<std::byte> bytes(size_t size, int value) { return std::vector<std::byte>(size, std::byte(value)); }

TEST(Packet, ItemsRoundTrip) {
  std::vector<std::byte> slot(kSlotBytes);
  PacketWriter writer(slot);
  EXPECT_TRUE(writer.empty());
  const GrantItem grant{.offset = 77, .region = 3};
  writer.add(ItemKind::kFrame, 0, bytes(wire::kHeaderBytes, 1), bytes(13, 2));
  writer.add(ItemKind::kOffer, 5, bytes(wire::kHeaderBytes, 3));
  writer.add(ItemKind::kGrant, 9, std::as_bytes(std::span(&grant, 1)));
  EXPECT_FALSE(writer.empty());
  const size_t size = writer.finish(17);

  PacketReader reader = PacketReader::open(ConstBytes(slot).first(size)).value();
  EXPECT_EQ(reader.credits(), 17);
  const PacketReader::Item frame = reader.next().value();
  EXPECT_EQ(frame.kind, ItemKind::kFrame);
  EXPECT_EQ(frame.body.size(), wire::kHeaderBytes + 13);
  EXPECT_EQ(frame.body.back(), std::byte{2});
  const PacketReader::Item offer = reader.next().value();
  EXPECT_EQ(offer.kind, ItemKind::kOffer);
  EXPECT_EQ(offer.number, 5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(offer.body.data()) % 8, reinterpret_cast<uintptr_t>(slot.data()) % 8);
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.next()->number, 9);
  EXPECT_TRUE(reader.done());
}

TEST(Packet, TheLargestSmallPayloadFits) {
  std::vector<std::byte> slot(kSlotBytes);
  PacketWriter writer(slot);
  EXPECT_FALSE(writer.fits(wire::kHeaderBytes + kMaxSmallPayload + 1));
  ASSERT_TRUE(writer.fits(wire::kHeaderBytes + kMaxSmallPayload));
  writer.add(ItemKind::kFrame, 0, bytes(wire::kHeaderBytes, 1), bytes(kMaxSmallPayload, 2));
  EXPECT_EQ(writer.finish(0), kSlotBytes);
  EXPECT_FALSE(writer.fits(0));
}

TEST(Packet, MalformedPacketsAreErrors) {
  std::vector<std::byte> slot(kSlotBytes);
  PacketWriter writer(slot);
  writer.add(ItemKind::kOffer, 5, bytes(wire::kHeaderBytes, 3));
  const size_t size = writer.finish(0);
  EXPECT_FALSE(PacketReader::open({}).ok());
  EXPECT_FALSE(PacketReader::open(ConstBytes(slot).first(size - 1)).ok());
  EXPECT_FALSE(PacketReader::open(ConstBytes(slot).first(size + 8)).ok());

  const auto damaged = [&](size_t at, int value) {
    std::vector<std::byte> copy(slot.begin(), slot.begin() + static_cast<ptrdiff_t>(size));
    copy[at] = std::byte(value);
    return PacketReader::open(copy).ok() && PacketReader::open(copy)->next().ok();
  };
  EXPECT_TRUE(damaged(10, 5)) << "an offer may have any number";
  EXPECT_FALSE(damaged(2, 1)) << "reserved";
  EXPECT_FALSE(damaged(8, 10)) << "the kind is unknown";
  EXPECT_FALSE(damaged(8, 5)) << "a kind without a body";
  EXPECT_FALSE(damaged(8, 6)) << "a kind whose body has another size";
  EXPECT_FALSE(damaged(12, 63)) << "an offer has the size of a header";
  EXPECT_FALSE(damaged(14, 1)) << "the item is longer than the packet";
}

TEST(Packet, RandomBytesEndWithinBounds) {
  std::mt19937 random(7);
  size_t items = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> noise(8 + random() % 300);
    // Small numbers, so that kinds and sizes are often valid.
    for (std::byte& one : noise) one = std::byte(random() % 5);
    const PacketHeader header{0, 0, static_cast<uint32_t>(noise.size())};
    std::memcpy(noise.data(), &header, sizeof(header));
    absl::StatusOr<PacketReader> reader = PacketReader::open(noise);
    ASSERT_TRUE(reader.ok());
    while (!reader->done()) {
      const auto item = reader->next();
      if (!item.ok()) break;
      ASSERT_LE(item->body.data() + item->body.size(), noise.data() + noise.size());
      ++items;
    }
  }
  SUCCEED() << items;
}

TEST(Packet, AnImmediateValueHoldsBoth) {
  EXPECT_EQ(offer_of(to_immediate(23, 64)), 23);
  EXPECT_EQ(credits_of(to_immediate(23, 64)), 64);
}

}  // namespace
}  // namespace gleaner::transport::rdma
