#include "comm-lib/session/acknowledgements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/plans.h"

namespace gleaner::testing {
namespace {

using exchange::Actions;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Acknowledgements of worker 1 to the three members of a job.
class AcknowledgementsTest : public ::testing::Test {
 protected:
  AcknowledgementsTest() { acks_.apply(*build_plan({.epoch = 4})); }
  void add(uint32_t owner, uint32_t keys = 1) {
    for (uint32_t i = 0; i < keys; ++i) acks_.add(owner, {9, 0, i}, actions_);
  }

  BufferPool pool_;
  Actions actions_;
  session::Acknowledgements acks_{{.job = 7, .worker = 1}, &pool_};
};

TEST_F(AcknowledgementsTest, FlushSendsOneFrame) {
  add(2, 3);
  EXPECT_THAT(actions_.sends, IsEmpty());
  acks_.flush(2, actions_);
  ASSERT_THAT(actions_.sends, SizeIs(1));
  const exchange::Send& sent = actions_.sends[0];
  EXPECT_EQ(sent.member, 2u);
  EXPECT_EQ(sent.header.type, wire::FrameType::kAck);
  EXPECT_EQ(sent.header.job, 7u);
  EXPECT_EQ(sent.header.epoch, 4u);
  EXPECT_EQ(sent.header.sender, 1u);
  EXPECT_EQ(sent.header.payload_bytes, 3 * sizeof(wire::PartitionKey));
  wire::PartitionKey last;
  std::memcpy(&last, sent.payload.bytes().data() + 2 * sizeof(last), sizeof(last));
  EXPECT_EQ(last, (wire::PartitionKey{9, 0, 2}));
  acks_.flush(2, actions_);
  EXPECT_THAT(actions_.sends, SizeIs(1)) << "the batch is empty";
}

TEST_F(AcknowledgementsTest, FullBatchLeaves) {
  add(2, session::Acknowledgements::kMaxKeys - 1);
  add(0);
  EXPECT_THAT(actions_.sends, IsEmpty());
  add(2, 2);
  ASSERT_THAT(actions_.sends, SizeIs(1));
  EXPECT_EQ(actions_.sends[0].payload.size(), session::Acknowledgements::kMaxKeys * sizeof(wire::PartitionKey));
  acks_.flush(2, actions_);
  EXPECT_EQ(actions_.sends[1].payload.size(), sizeof(wire::PartitionKey));
}

TEST_F(AcknowledgementsTest, UnconnectedOwnersKeepTheirBatch) {
  add(0);
  add(2);
  const auto is_summer = [](uint32_t owner) { return owner == 2; };
  EXPECT_FALSE(acks_.empty_for(is_summer));
  acks_.flush_connected(is_summer, actions_);
  ASSERT_THAT(actions_.sends, SizeIs(1));
  EXPECT_EQ(actions_.sends[0].member, 2u);
  EXPECT_TRUE(acks_.empty_for(is_summer));
  EXPECT_FALSE(acks_.empty());
}

TEST_F(AcknowledgementsTest, DropForgetsABatch) {
  add(0);
  add(2);
  acks_.drop(0);
  acks_.flush(0, actions_);
  EXPECT_THAT(actions_.sends, IsEmpty());
  EXPECT_FALSE(acks_.empty());
  acks_.drop_all();
  EXPECT_TRUE(acks_.empty());
}

}  // namespace
}  // namespace gleaner::testing
