// Tests of the messages between local ranks, and of the layout of tensors in shared memory.
#include "comm-lib/local/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "comm-lib/local/layout.h"

namespace gleaner::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> packet_of(const std::vector<std::pair<Message, std::string>>& messages) {
  std::vector<std::byte> packet;
  for (auto [message, text] : messages) {
    message.payload_bytes = static_cast<uint32_t>(text.size());
    const ConstBytes header = payload_of(message);
    packet.insert(packet.end(), header.begin(), header.end());
    const ConstBytes payload = std::as_bytes(std::span(text));
    packet.insert(packet.end(), payload.begin(), payload.end());
  }
  return packet;
}

TEST(Messages, ReadBackAsWritten) {
  Message ready;
  ready.type = MessageType::kReady;
  ready.detail = 2;
  ready.tensor = 70000;
  ready.step = uint64_t{1} << 40;
  Message result;
  result.type = MessageType::kResult;
  result.detail = code_of(absl::UnavailableError(""));
  const auto packet = packet_of({{ready, ""}, {result, "summer/0 is lost"}});
  PacketReader reader(packet);
  Message message;
  ConstBytes payload;
  ASSERT_TRUE(*reader.next(message, payload));
  EXPECT_EQ(std::memcmp(&message, &ready, sizeof(message)), 0);
  EXPECT_TRUE(payload.empty());
  ASSERT_TRUE(*reader.next(message, payload));
  EXPECT_EQ(status_of(message, payload), absl::UnavailableError("summer/0 is lost"));
  EXPECT_FALSE(*reader.next(message, payload));
}

TEST(Messages, MalformedPacketsAreErrorsWithTheReason) {
  const auto why = [](Message message, size_t bytes) {
    auto packet = packet_of({{message, ""}});
    std::memcpy(packet.data(), &message, sizeof(message));
    packet.resize(bytes);
    Message read;
    ConstBytes payload;
    const auto more = PacketReader(packet).next(read, payload);
    EXPECT_TRUE(absl::IsInvalidArgument(more.status()));
    return std::string(more.status().message());
  };
  Message good;
  good.type = MessageType::kLeave;
  EXPECT_THAT(why(good, 23), HasSubstr("24 bytes, got 23"));
  Message bad = good;
  bad.magic = 0;
  EXPECT_THAT(why(bad, 24), HasSubstr("the bytes are not one"));
  bad = good;
  bad.version = 4;
  EXPECT_THAT(why(bad, 24), HasSubstr("version 4"));
  bad = good;
  bad.type = static_cast<MessageType>(0);
  EXPECT_THAT(why(bad, 24), HasSubstr("type 0"));
  bad.type = static_cast<MessageType>(18);
  EXPECT_THAT(why(bad, 24), HasSubstr("type 18"));
  bad = good;
  bad.payload_bytes = 9;
  EXPECT_THAT(why(bad, 32), HasSubstr("9 bytes of payload after LEAVE, got 8"));
}

TEST(Messages, UnknownStatusCodesStayErrors) {
  Message message;
  message.detail = 200;
  EXPECT_EQ(status_of(message, {}).code(), absl::StatusCode::kUnknown);
  message.detail = 0;
  EXPECT_TRUE(status_of(message, {}).ok());
}

TEST(Slices, CoverTheTensorInWholeCacheLines) {
  for (const size_t bytes : {size_t{0}, size_t{2}, size_t{64}, kSmallestSlice, kSmallestSlice + 2, size_t{1} << 20,
                             (size_t{1} << 20) + 2, size_t{67108870}}) {
    for (uint32_t ranks = 2; ranks <= kMaxLocalRanks; ++ranks) {
      size_t end = 0;
      uint32_t busy = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const Slice slice = slice_of(bytes, ranks, rank);
        EXPECT_EQ(slice.begin, end);
        EXPECT_TRUE(slice.end == bytes || slice.end % kLine == 0);
        if (slice.begin < slice.end) {
          EXPECT_EQ(busy++, rank) << "an empty slice before";
        }
        end = slice.end;
      }
      EXPECT_EQ(end, bytes);
      EXPECT_EQ(busy, reducers(bytes, ranks));
    }
  }
  EXPECT_EQ(reducers(kSmallestSlice, 8), 1);
  EXPECT_EQ(reducers(8 * kSmallestSlice, 8), 8);
}

TEST(Layouts, KeepTensorsApartAndPadLittle) {
  const std::vector<TensorShape> tensors = {
      {0, DataType::kFloat32}, {1, DataType::kFloat16}, {33, DataType::kFloat32}, {2100, DataType::kFloat64}};
  const auto layout = lay_out(tensors, 5, 3);
  ASSERT_TRUE(layout.ok());
  std::vector<size_t> slots, sums, results;
  for (const TensorOffsets& each : layout->offsets) {
    slots.push_back(each.slot);
    sums.push_back(each.sum);
    results.push_back(each.result);
  }
  EXPECT_THAT(slots, ElementsAre(0, 0, 64, 256));
  EXPECT_THAT(sums, ElementsAre(0, 0, 128, 320));
  EXPECT_THAT(results, ElementsAre(0, 64, 128, 320)) << "the fp16 result is apart from its fp32 sum";
  EXPECT_EQ(layout->slot_bytes, 20480);  // 256 + 16800, rounded up to pages
  EXPECT_EQ(layout->sums_bytes, 20480);  // 320 + 16800
  EXPECT_EQ(layout->total_bytes(), 4 * 20480);
  EXPECT_NE(layout->digest, lay_out(tensors, 6, 3)->digest);
}

}  // namespace
}  // namespace gleaner::local
