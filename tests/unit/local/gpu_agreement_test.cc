// Tests of how local ranks come to sum on their GPUs.
#include "comm-lib/local/gpu_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::local {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Sent = std::vector<std::pair<uint32_t, MessageType>>;  // to whom, and of what kind

class Agreement : public ::testing::Test {
 protected:
  Agreement() {
    for (const uint32_t batch : {0u, 7u}) agreement.add(batch);
  }
  // Returns what follows a message of a rank.
  Sent on(uint32_t rank, MessageType type, uint8_t detail = 0, uint32_t batch = 0) {
    Message message;
    message.type = type;
    message.detail = detail;
    message.tensor = batch;
    device::SharedMemory zone{};
    zone[0] = std::byte(rank + 1);
    outgoing.clear();
    const ConstBytes payload = type == MessageType::kZone ? payload_of(zone) : ConstBytes{};
    EXPECT_EQ(agreement.on_message(rank, message, payload, outgoing), absl::OkStatus());
    Sent sent;
    for (const auto& each : outgoing) sent.emplace_back(each.rank, each.message.type);
    return sent;
  }

  GpuAgreement agreement{2};
  std::vector<GpuAgreement::Outgoing> outgoing;
};

TEST_F(Agreement, GoesOnWhenAllRanksHaveDoneTheirPart) {
  EXPECT_THAT(on(1, MessageType::kGpu, 1), IsEmpty());
  EXPECT_THAT(on(1, MessageType::kGpu, 1), IsEmpty()) << "told twice";
  EXPECT_THAT(on(0, MessageType::kGpu, 1),
              ElementsAre(std::pair(0u, MessageType::kOffer), std::pair(1u, MessageType::kOffer)));
  EXPECT_THAT(on(0, MessageType::kZone), IsEmpty());
  EXPECT_THAT(on(0, MessageType::kZone, 0, 7), IsEmpty());
  EXPECT_THAT(on(1, MessageType::kZone),
              ElementsAre(std::pair(0u, MessageType::kZone), std::pair(1u, MessageType::kZone)));
  EXPECT_EQ(outgoing[0].message.detail, 1) << "rank 0 opens the zone of rank 1";
  EXPECT_EQ(outgoing[0].zone[0], std::byte{2});
  EXPECT_THAT(on(1, MessageType::kOpened), IsEmpty());
  EXPECT_THAT(on(0, MessageType::kOpened),
              ElementsAre(std::pair(0u, MessageType::kUse), std::pair(1u, MessageType::kUse)));
}

TEST_F(Agreement, RankThatCantSumEndsTheWayOfTheGroup) {
  EXPECT_THAT(on(0, MessageType::kGpu, 1), IsEmpty());
  EXPECT_THAT(on(1, MessageType::kGpu, 0), IsEmpty());
  EXPECT_THAT(on(1, MessageType::kGpu, 1), IsEmpty());
}

TEST_F(Agreement, BatchThatARankCantOpenIsNotUsedAndOthersAre) {
  for (const uint32_t batch : {0u, 7u}) {
    on(0, MessageType::kZone, 0, batch);
    on(1, MessageType::kZone, 0, batch);
    on(0, MessageType::kOpened, 0, batch);
  }
  EXPECT_THAT(on(1, MessageType::kOpened, 5, 7), IsEmpty());
  EXPECT_THAT(on(1, MessageType::kOpened, 0, 7), IsEmpty());
  EXPECT_EQ(on(1, MessageType::kOpened).size(), 2u);
}

TEST_F(Agreement, UnknownBatchesAreRefused) {
  Message message;
  message.type = MessageType::kOpened;
  message.tensor = 3;
  EXPECT_TRUE(absl::IsInvalidArgument(agreement.on_message(1, message, {}, outgoing)));
}

}  // namespace
}  // namespace gleaner::local
